import { useDuckDb } from './use-duckdb.ts'
import { describeWarehouse } from './warehouse.ts'

// DuckDB has three files, which run beside each other: together they are the longest of the unit tests.
describeWarehouse('duckdb', useDuckDb())
