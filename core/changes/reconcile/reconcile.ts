import type { LedgerRow } from '../../state/ledger/row.ts'
import type { LookupResult } from '../change-kind.ts'
import { attemptsUsed, parseBody } from '../body.ts'
import { controlFailure, explainRefusal, lookUp, type LookupDeps } from './lookup.ts'
import { transition } from '../transitions.ts'
import { hasFailed, type Outcome } from '../outcomes.ts'

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
  // What a restored ledger calls unknown may never have been sent, so it has not failed.
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
