import type { HashValue } from './private-field.ts'
import type { EncodedRows, Rows } from './row-encoder.ts'
import type { Table } from './table.ts'

/** Where an encoder's rows gather until they are taken, and what is met on the way. */
export interface EncoderOutput {
  /**
   * What the value encoded last could not put into cells; whoever takes it sets it back to undefined. Not a
   * return value beside the text: that would make an object for every object of every record.
   */
  rest: unknown
  readonly rejected: Rows
  rowsOf(table: string): Rows
  /** Counts a value its column can't hold, and leaves what of it may be written to `rest`. */
  spill(path: string, rest: unknown): void
  /** Does the work; if that throws, nothing of it is left among what was gathered. */
  orNothing(work: () => void): void
  /** Everything gathered since the last take. */
  take(): EncodedRows
}

/** What the compiled parts of an encoder need of it. */
export interface Compiling {
  out: EncoderOutput
  hash: HashValue
}

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
    rest: undefined,
    rejected,
    rowsOf: (table) => byTable.get(table)!,
    spill(path, rest) {
      drift[path] = (drift[path] ?? 0) + 1
      this.rest = rest
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
        this.rest = undefined
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
