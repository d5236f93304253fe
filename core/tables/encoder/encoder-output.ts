import type { Rows } from './encoded-rows.ts'
import type { EncoderOutput } from './compiled-row.ts'
import type { Table } from '../table.ts'

export function createOutput(tables: readonly Table[]): EncoderOutput {
  const gathered = tables.map((table) => [table.name, { text: '', rows: 0 }] as const)
  const byTable = new Map(gathered)
  const rejected = { text: '', rows: 0 }
  let drift: Record<string, number> = {}
  const takeRows = (rows: Rows) => {
    const taken = { ...rows }
    rows.text = ''
    rows.rows = 0
    return taken
  }
  return {
    rejected,
    rowsOf: (table) => byTable.get(table)!,
    countDrift(path) {
      drift[path] = (drift[path] ?? 0) + 1
    },
    orNothing(work) {
      const before = gathered.map(([, rows]) => ({ ...rows }))
      const driftBefore = drift
      drift = { ...drift }
      try {
        work()
      } catch (error) {
        for (const [at, [, rows]] of gathered.entries()) Object.assign(rows, before[at])
        drift = driftBefore
        throw error
      }
    },
    take() {
      const taken = drift
      drift = {}
      return {
        tables: gathered.map(([, rows]) => takeRows(rows)),
        rejected: takeRows(rejected),
        drift: taken,
      }
    },
  }
}
