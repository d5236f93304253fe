/** Destinations with files of their own for each run. */
export const fileDestinationNames = ['csv', 'parquet'] as const

/** Destinations that keep the newest state of every record, whichever run brought it. */
export const warehouseNames = ['duckdb', 'postgres'] as const

/** Where an export can be published. */
export const destinationNames = [...fileDestinationNames, ...warehouseNames] as const

export type FileDestinationName = (typeof fileDestinationNames)[number]
export type WarehouseName = (typeof warehouseNames)[number]
export type DestinationName = (typeof destinationNames)[number]
