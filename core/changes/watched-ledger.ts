import { type ClaimsMark, refuseOlderThanMark } from '../state/claims-mark.ts'
import { OldLedgerError } from '../state/errors.ts'
import type { Ledger } from '../state/ledger/ledger.ts'

/** How many rows of a run were staged, and the `claims` of `Ledger.known` then. */
interface Told {
  rows: number
  claims: number
}

/**
 * Returns the `claims` that the ledger knows.
 * @throws {OldLedgerError} the ledger knows fewer of its rows or claims
 */
export async function refuseOlderThanTold({
  ledger,
  run,
  told: { rows, claims },
}: {
  ledger: Pick<Ledger, 'known'>
  run: string
  told: Told
}): Promise<number> {
  const known = await ledger.known({ run })
  const lacks = [
    ...(known.rows < rows ? [`${rows - known.rows} of ${rows} rows`] : []),
    ...(known.claims < claims ? [`claims`] : []),
  ]
  if (lacks.length > 0) throw new OldLedgerError({ lacks: `${lacks.join(' and ')} of ${run}` })
  return known.claims
}

/** The ledger of a run that sends, which must not forget what was claimed. */
export interface WatchedLedger {
  ledger: Ledger
  /** What Temporal is told; see `Ledger.known`. */
  readonly claims: number
  /** Raises the mark, at the end of a segment. */
  end(): Promise<void>
}

/**
 * Refuses a ledger that is older than its mark, or than what Temporal was told of a run, and goes on to compare while the
 * run sends: a server that fails over replaces the ledger under a running sender.
 *
 * @throws {OldLedgerError}
 */
export async function watchLedger({
  ledger,
  mark,
  run,
  told,
}: {
  ledger: Ledger
  /** Of a state on PostgreSQL; `state.db` was compared when it was opened. */
  mark: ClaimsMark | undefined
  run: string
  told: Told
}): Promise<WatchedLedger> {
  await refuseOlderThanMark({ ledger, mark })
  const before = mark === undefined ? 0 : await ledger.claimed()
  const first = await refuseOlderThanTold({ ledger, run, told })
  let own = 0
  return {
    get claims() {
      return first + own
    },
    ledger: {
      ...ledger,
      async claim(options) {
        const claimed = await ledger.claim(options)
        if (claimed !== undefined) own += 1
        return claimed
      },
      async due(options) {
        const rows = await ledger.due(options)
        // Afterwards: these rows are not from an older ledger then.
        await refuseOlderThanTold({ ledger, run, told: { rows: told.rows, claims: first + own } })
        await mark?.raise(before + own)
        return rows
      },
    },
    end: async () => await mark?.raise(Math.max(before + own, await ledger.claimed())),
  }
}
