import type { Billing } from '../billing/client.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { attemptsUsed, parseBody } from './body.ts'
import type { ChangeKind, LookupResult } from './change-kind.ts'
import { idsBefore } from './kinds/create-retention.ts'
import { hasFailed, type Outcome } from './outcomes.ts'
import { transition } from './transitions.ts'

export interface LookupDeps {
  ledger: Ledger
  kind: ChangeKind
  /** With the run's share of the rate. */
  billing: Billing
  signal?: AbortSignal | undefined
}

/** What the lookups of a run need. */
export interface Reconciling extends LookupDeps {
  run: string
  /** How long a lost request may still take effect: the first lookup comes that long after it, the second twice as long after the first. */
  settleMs: number
  /** How long an accepted request (a charge) may need to show its effect. Default `settleMs`. */
  verifyMs?: number
  /** For kinds whose attempts are used up (resumes). */
  attempts: Attempts
}

export interface Attempts {
  /** A hard bound: see `attemptsUsed`. */
  most: number
  /** The wait after the first, second ... attempt; the last one stays. */
  waitsMs: readonly number[]
}

/** After so many sends without an answer a change is parked: something is wrong with it or with the service. */
const maxSends = 3

/** When an unknown change is to be looked up next, by the ledger's clock. */
export function lookupAt(
  { kind, settleMs, verifyMs = settleMs }: Pick<Reconciling, 'kind' | 'settleMs' | 'verifyMs'>,
  row: LedgerRow,
): number {
  if (kind.whenUnknown(parseBody(row)) === 'park') return 0
  if (row.lookups === 0) return (row.unknownSince ?? 0) + (row.answeredAt === null ? settleMs : verifyMs)
  return (row.checkedAt ?? 0) + 2 * settleMs
}

/**
 * Reconciles an unknown change whose lookup is due. It sends nothing that writes. A change that is proven absent or safe to
 * repeat is staged again; it stays unknown after a first lookup that finds nothing; else it becomes done, rejected or
 * parked.
 * @throws the errors of the reads: the change stays unknown
 */
export async function reconcileOne(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  const action = reconciling.kind.whenUnknown(parseBody(row))
  if (action === 'park') return await park(reconciling, row, 'cannotLookUp')
  if (action === 'lookUp')
    return row.outcome === 'refused' ? await closeRefused(reconciling, row) : await byLookup(reconciling, row)
  // There is an answer, but to a later send than the one in doubt.
  if (row.outcome === 'refusedLater') return await park(reconciling, row, 'refusedLater')
  if (row.sends >= maxSends) return await park(reconciling, row, 'sentTooOften')
  await close(reconciling, row, { to: 'staged', by: 'repeat', outcome: 'repeatable' })
}

async function closeRefused(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  if (!(await explainRefusal({ ...reconciling, row })))
    await close(reconciling, row, { to: 'rejected', outcome: 'refused' })
}

/** Nothing found proves an absence only if it is not the first lookup, which a late request may still follow. */
async function byLookup(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  const first = await lookUp(reconciling, row)
  if (first.result !== 'absent') return await closeAs(first, reconciling, row)
  const { ledger } = reconciling
  if (row.lookups === 0) {
    const patch = { lookups: 1, checkedAt: ledger.now() }
    await ledger.move({ id: row.id, from: ['unknown'], claims: row.claims, patch })
    return
  }
  const failure = await controlFailure(reconciling, row)
  if (failure !== undefined) return await park(reconciling, row, failure.outcome, failure.message)
  // The list may have begun to show it between its lookup and the control.
  const again = await lookUp(reconciling, row)
  if (again.result !== 'absent') return await closeAs(again, reconciling, row)
  if (row.outcome === 'refusedLater')
    return await close(reconciling, row, { to: 'rejected', outcome: 'refused' })
  if (row.sends >= maxSends) return await park(reconciling, row, 'sentTooOften')
  await close(reconciling, row, { to: 'staged', outcome: 'absent' })
}

async function closeAs(
  found: Exclude<LookupResult, { result: 'absent' }>,
  reconciling: Reconciling,
  row: LedgerRow,
): Promise<void> {
  const { outcome, message: error = null } = found
  if (found.result === 'unclear') return await park(reconciling, row, outcome, error)
  // The facts of a lookup replace the answer, which said only that the request was accepted.
  const answer = found.facts === undefined ? {} : { answer: JSON.stringify(found.facts) }
  if (found.result === 'fellBack') return await useUpAttempt(reconciling, row, found, answer)
  const otherIds = found.otherIds && { otherIds: JSON.stringify(found.otherIds) }
  const patch = { answerId: found.id, ...otherIds, error, ...answer }
  await close(reconciling, row, { to: 'done', outcome, patch })
}

async function useUpAttempt(
  reconciling: Reconciling,
  row: LedgerRow,
  found: Extract<LookupResult, { result: 'fellBack' }>,
  answer: { answer?: string },
): Promise<void> {
  const { attempts: allowed, ledger, settleMs } = reconciling
  // The service's own words say more than what the lookup saw.
  const refusal = row.outcome === 'refusedLater' ? `; the service refused it: ${row.error}` : ''
  const error = `${found.message}${refusal}`
  const attempts = attemptsUsed(row)
  if (attempts >= allowed.most) {
    // Nothing is in doubt about it: a later run may try again.
    const usedUp = { error: `${error} (attempt ${attempts} of ${allowed.most})`, holdsKey: 0 }
    return await close(reconciling, row, {
      to: 'parked',
      outcome: 'attemptsUsedUp',
      patch: { ...answer, ...usedUp },
    })
  }
  // A row that a restore made unknown may never have been sent, so it has not failed.
  const outcome = row.outcome === 'restored' ? 'stillOpen' : found.outcome
  const wait = allowed.waitsMs[Math.max(0, attempts - 1)] ?? allowed.waitsMs.at(-1) ?? 0
  // Without an answer its request may still be on its way, held back by a frozen process or by the network: not sooner
  // than a change that two lookups proved absent.
  const heldUntil = row.answeredAt === null ? (row.unknownSince ?? 0) + 3 * settleMs : 0
  const patch = { ...answer, error, notBefore: Math.max(ledger.now() + wait, heldUntil) }
  await close(reconciling, row, { to: 'staged', outcome, patch })
}

const park = (reconciling: Reconciling, row: LedgerRow, outcome: Outcome, error = row.error) =>
  close(reconciling, row, { to: 'parked', outcome, patch: { error } })

async function close(
  { ledger }: Reconciling,
  row: LedgerRow,
  closing: Pick<Parameters<typeof transition>[0], 'to' | 'outcome' | 'patch'> & { by?: 'repeat' },
): Promise<void> {
  const { to, outcome } = closing
  const now = ledger.now()
  const isOver = to !== 'staged' || hasFailed({ state: to, outcome })
  const patch = {
    checkedAt: now,
    lookups: row.lookups + 1,
    ...(isOver && { closedAt: now }),
    // Only a change that holds its key may be sent.
    ...(to === 'staged' && { holdsKey: 1 }),
    // That the service has done it says nothing about the gateway that answered instead.
    ...(to === 'done' && hasFault(row) && { event: row.event, eventAt: row.eventAt }),
    ...closing.patch,
  }
  await transition({ ledger, row, by: 'lookup', ...closing, patch })
}

const hasFault = ({ event, eventAt, sentAt }: LedgerRow) =>
  event === 'fault' && (eventAt ?? 0) >= (sentAt ?? 0)

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
async function controlFailure(
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
