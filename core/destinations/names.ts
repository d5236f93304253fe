/** Where an export can be published. */
export const destinationNames = ['csv', 'duckdb', 'parquet', 'postgres'] as const
export type DestinationName = (typeof destinationNames)[number]
