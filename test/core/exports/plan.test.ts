import { expect, it } from 'vitest'
import { refuseMissing } from '../../../core/exports/plan.ts'

it('a run to DuckDB is refused at its start where DuckDB could not write below the data folder', () => {
  const destinations = new Map([['duckdb', {}]])
  const start = (dataDir: string) => () =>
    refuseMissing({ destinations, shared: { isShared: false }, dataDir, name: 'duckdb' })
  expect(start('/srv/a?b')).toThrow('DuckDB does not write files below /srv/a?b, because of the "?". Set')
  expect(start(`/srv/a #1 %3F 'ñ' [*]`)).not.toThrow()
})
