import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { parseBody } from '../body.ts'
import type { ChangeKind, LookupResult } from '../change-kind.ts'
import { idsBefore } from '../kinds/create-retention.ts'
import type { Outcome } from '../outcomes.ts'
import { transition } from '../transitions.ts'

export interface LookupDeps {
  ledger: Ledger
  kind: ChangeKind
  /** With the run's share of the rate. */
  billing: Billing
  signal?: AbortSignal | undefined
}

/** Looks up the outcome of a change, excluding records under its key that belong to other changes of the ledger. */
export async function lookUp(
  { ledger, kind, billing, signal }: LookupDeps,
  row: LedgerRow,
): Promise<LookupResult> {
  if (kind.lookUp === undefined) throw new TypeError(`${kind.name} can't be looked up`)
  const { workspace, mode, key } = row
  const holders = await ledger.holders({ workspace, mode, kind: kind.name, keys: [key] })
  const isOther = ({ id, state, answerId }: LedgerRow) =>
    id !== row.id && (answerId !== null || state === 'done')
  const others = holders.filter(isOther).flatMap(({ answerId, before }) => [answerId, ...idsBefore(before)])
  return await kind.lookUp({ billing, body: parseBody(row), before: row.before, others, signal })
}

interface Failure {
  outcome: Outcome
  message: string
}

const noControl: Failure = { outcome: 'noControl', message: 'no change of this run is known to be done' }

/**
 * The positive control: repeats the lookup for the change of this run that was done last, which must be found. With an
 * ignored filter, or with a list that lags or is empty, every change would look absent. The control runs again after
 * each absence, because an earlier one says nothing about the list now.
 *
 * After a restore the ledger may not contain anything that the run has done. The control is then a record that the
 * service's own list shows: requests sent before the restore had longer to take effect than any lost request.
 *
 * Returns undefined if the lookup finds the known change, else the reason why an absence proves nothing.
 */
export async function controlFailure(
  options: LookupDeps & { run: string },
  absent: Pick<LedgerRow, 'outcome'>,
): Promise<Failure | undefined> {
  const known = await options.ledger.lastDone({ run: options.run })
  if (known === undefined) return absent.outcome === 'restored' ? await listFailure(options) : noControl
  const found = await lookUp(options, known)
  // The service may have it twice, and the ledger either of the two.
  if (found.result === 'done' && [found.id, ...(found.otherIds ?? [])].includes(known.answerId ?? ''))
    return undefined
  return {
    outcome: 'controlFailed',
    message: `the same lookup does not find row ${known.row}, which is done as ${known.answerId}`,
  }
}

async function listFailure({ kind, billing, signal }: LookupDeps): Promise<Failure | undefined> {
  const listed = await kind.findListed?.({ billing, signal })
  if (listed === undefined) return noControl
  if (listed.found) return undefined
  return {
    outcome: 'controlFailed',
    message: `the same lookup does not find ${listed.id}, which is in the list`,
  }
}

/**
 * Looks up why the service refused a change that may have become unnecessary or impossible since its check: the check
 * before sending decides again. The refused request had no effect, so it no longer counts as sent. False, and nothing is
 * changed, if the check would send it or another attempt was faster.
 */
export async function explainRefusal({
  ledger,
  kind,
  billing,
  row,
  signal,
}: LookupDeps & { row: LedgerRow }): Promise<boolean> {
  const found = await kind.checkBefore?.({
    billing,
    body: parseBody(row),
    signal,
    last: row.before,
    attempts: 0,
  })
  if (found === undefined || !('instead' in found)) return false
  const { instead: to, outcome, message, facts } = found
  const at = ledger.now()
  const patch = {
    error: `${message}; the service refused it: ${row.error}`,
    sends: row.sends - 1,
    lookups: row.lookups + 1,
    checkedAt: at,
    closedAt: at,
    holdsKey: to === 'done' ? 1 : 0,
    // It shows nothing about sending.
    event: null,
    eventAt: null,
    ...(facts !== undefined && { answer: JSON.stringify(facts) }),
  }
  return await transition({ ledger, row, to, by: 'lookup', outcome, patch })
}
