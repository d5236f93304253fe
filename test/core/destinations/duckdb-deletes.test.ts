import { useDuckDb } from './use-duckdb.ts'
import { describeDeletes } from './warehouse-deletes.ts'

describeDeletes('duckdb', useDuckDb())
