/** Destinations that write separate files for each run. */
export const fileDestinationNames = ['csv', 'parquet'] as const

/** Destinations that keep the newest state of every record across runs. */
export const warehouseNames = ['duckdb', 'postgres'] as const

/** Every destination an export can be published to. */
export const destinationNames = [...fileDestinationNames, ...warehouseNames] as const

export const isFileDestination = (name: string): name is FileDestinationName =>
  fileDestinationNames.some((one) => one === name)

export type FileDestinationName = (typeof fileDestinationNames)[number]
export type WarehouseName = (typeof warehouseNames)[number]
export type DestinationName = (typeof destinationNames)[number]
