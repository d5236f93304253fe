import { isDone, type Outcome } from '../../../core/changes/outcomes.ts'
import type { KeySpace } from '../../../core/state/ledger/queries.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import type { State } from '../../../core/state/open.ts'

/** The changes of a run, by what is left to do. */
export interface Rows {
  /** The keys of those that are done, by row. */
  done: Map<number, string>
  /** Rejected, or left to another run. */
  left: LedgerRow[]
  parked: LedgerRow[]
  /** How many may have been sent, or are done otherwise than they were sent. */
  inDoubt: number
  all: number
}

/** Outcomes of rows that are not to be sent. */
const closed: readonly (string | null)[] = [
  'dropped',
  'existed',
  'nothingGiven',
  'gone',
  'coolingDown',
] satisfies Outcome[]

/** Outcomes of rows that the service has, but not as they were sent. */
const wrong: readonly (string | null)[] = ['doubled', 'storedDifferently', 'wrongMode'] satisfies Outcome[]

/** Undefined if the run staged nothing: nobody knows which changes it was about. */
export async function readRows({ state, run }: { state: State; run: string }): Promise<Rows | undefined> {
  const rows: Rows = { done: new Map(), left: [], parked: [], inDoubt: 0, all: 0 }
  for await (const row of state.ledger.rows({ run })) {
    rows.all += 1
    if (wrong.includes(row.outcome)) rows.inDoubt += 1
    else if (isDone(row)) rows.done.set(row.row, row.key)
    else if (row.state === 'parked') rows.parked.push(row)
    else if (row.state === 'rejected') rows.left.push(row)
    else if (row.state !== 'dropped') rows.inDoubt += 1
    else if (!closed.includes(row.outcome)) rows.left.push(row)
  }
  return rows.all === 0 ? undefined : rows
}

const keysAtOnce = 500

/** Whether another run has done each of these changes after they were staged. */
export async function areDoneLater(of: {
  state: State
  space: KeySpace
  rows: readonly LedgerRow[]
  /** Whether a later change under the same key does what the row was to do. */
  answers: (row: LedgerRow, later: LedgerRow) => boolean
}): Promise<boolean> {
  const { state, space, rows, answers } = of
  for (let from = 0; from < rows.length; from += keysAtOnce) {
    const batch = rows.slice(from, from + keysAtOnce)
    const keys = [...new Set(batch.map(({ key }) => key))]
    const byKey = Map.groupBy(await state.ledger.underKeys({ ...space, keys }), ({ key }) => key)
    const isDoneLater = (row: LedgerRow) => {
      const under = byKey.get(row.key) ?? []
      // Of two rows with one key, nobody knows which one was done.
      if (under.filter(({ run }) => run === row.run).length > 1) return false
      return under.some(
        (other) =>
          other.id > row.id && isDone(other) && !wrong.includes(other.outcome) && answers(row, other),
      )
    }
    if (!batch.every(isDoneLater)) return false
  }
  return true
}
