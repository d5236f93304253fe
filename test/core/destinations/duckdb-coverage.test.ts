import { describeCoverage } from './warehouse-coverage.ts'
import { useDuckDb } from './use-duckdb.ts'

describeCoverage('duckdb', useDuckDb())
