import { useDuckDb } from './use-duckdb.ts'
import { describeGone } from './warehouse-gone.ts'
import { describeWarehouse } from './warehouse.ts'

const open = useDuckDb()
describeWarehouse('duckdb', open)
describeGone('duckdb', open)
