import type { LedgerRow } from '../../state/ledger/row.ts'
import type { LookupResult } from '../change-kind.ts'
import { attemptsUsed, parseBody } from '../body.ts'
import { controlFailure, explainRefusal, lookUp, type LookupDeps } from './lookup.ts'
import { transition } from '../transitions.ts'
import type { Outcome } from '../outcomes.ts'

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
  if (action === 'lookUp') return await reconcileByLookup(reconciling, row)
  if (action === 'park') return await park(reconciling, row, 'cannotLookUp', row.error)
  // There is an answer, but to a later send than the one in doubt.
  if (row.outcome === 'refusedLater') return await park(reconciling, row, 'refusedLater', row.error)
  if (row.sends >= maxSends) return await park(reconciling, row, 'sentTooOften', row.error)
  await close(reconciling, row, { to: 'staged', by: 'repeat', outcome: 'repeatable' })
}

async function reconcileByLookup(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  if (row.outcome === 'refused') return await closeRefused(reconciling, row)
  await closeAs(await lookUp(reconciling, row), reconciling, row)
}

async function closeAs(result: LookupResult, reconciling: Reconciling, row: LedgerRow): Promise<void> {
  if (result.result === 'done') {
    const patch = {
      answerId: result.id,
      ...(result.otherIds && { otherIds: JSON.stringify(result.otherIds) }),
      error: result.message ?? null,
      closedAt: reconciling.ledger.now(),
      ...factsOf(result),
    }
    return await close(reconciling, row, { to: 'done', outcome: result.outcome, patch })
  }
  if (result.result === 'unclear') return await park(reconciling, row, result.outcome, result.message)
  if (result.result === 'fellBack') return await useUpAttempt(reconciling, row, result)
  await closeAbsent(reconciling, row)
}

async function closeRefused(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  if (await explainRefusal({ ...reconciling, row })) return
  const patch = { closedAt: reconciling.ledger.now() }
  await close(reconciling, row, { to: 'rejected', outcome: 'refused', patch })
}

/** A first lookup that finds nothing proves nothing: the request may still take effect. */
async function closeAbsent(reconciling: Reconciling, row: LedgerRow): Promise<void> {
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
    return await close(reconciling, row, {
      to: 'rejected',
      outcome: 'refused',
      patch: { closedAt: ledger.now() },
    })
  if (row.sends >= maxSends) return await park(reconciling, row, 'sentTooOften', row.error)
  await close(reconciling, row, { to: 'staged', outcome: 'absent' })
}

async function useUpAttempt(
  reconciling: Reconciling,
  row: LedgerRow,
  result: Extract<LookupResult, { result: 'fellBack' }>,
): Promise<void> {
  // What a restored ledger calls unknown may never have been sent, so it has not failed.
  const outcome = row.outcome === 'restored' ? 'stillOpen' : result.outcome
  // The service's own words say more than what the lookup saw.
  const message =
    row.outcome === 'refusedLater'
      ? `${result.message}; the service refused it: ${row.error}`
      : result.message
  const { attempts: allowed, ledger } = reconciling
  const attempts = attemptsUsed(row)
  const patch = { error: message, closedAt: ledger.now(), ...factsOf(result) }
  if (attempts >= allowed.most) {
    // Nothing is in doubt about it: a later run may try again.
    const usedUp = { ...patch, error: `${message} (attempt ${attempts} of ${allowed.most})`, holdsKey: 0 }
    return await close(reconciling, row, { to: 'parked', outcome: 'attemptsUsedUp', patch: usedUp })
  }
  const wait = allowed.waitsMs[Math.max(0, attempts - 1)] ?? allowed.waitsMs.at(-1) ?? 0
  // Without an answer its request may still be on its way, held back by a frozen process or by the network: not sooner
  // than a change that two lookups proved absent.
  const heldUntil = row.answeredAt === null ? (row.unknownSince ?? 0) + 3 * reconciling.settleMs : 0
  const notBefore = Math.max(ledger.now() + wait, heldUntil)
  await close(reconciling, row, { to: 'staged', outcome, patch: { ...patch, notBefore } })
}

/** The facts of a lookup replace the answer, which said only that the request was accepted. */
const factsOf = ({ facts }: { facts?: unknown }) =>
  facts === undefined ? {} : { answer: JSON.stringify(facts) }

const park = (reconciling: Reconciling, row: LedgerRow, outcome: Outcome, error: string | null) =>
  close(reconciling, row, { to: 'parked', outcome, patch: { error, closedAt: reconciling.ledger.now() } })

type Closing = Pick<Parameters<typeof transition>[0], 'to' | 'outcome' | 'patch'> & {
  by?: 'lookup' | 'repeat'
}

async function close(reconciling: Reconciling, row: LedgerRow, to: Closing): Promise<void> {
  const { ledger } = reconciling
  // Only a change that holds its key may be sent.
  const isToSend = to.to === 'staged'
  const patch = {
    checkedAt: ledger.now(),
    lookups: row.lookups + 1,
    ...(isToSend && { holdsKey: 1 }),
    // That the service has done it says nothing about the gateway that answered instead.
    ...(to.to === 'done' && hasFault(row) && { event: row.event, eventAt: row.eventAt }),
    ...to.patch,
  }
  await transition({ ledger, row, by: 'lookup', ...to, patch })
}

const hasFault = ({ event, eventAt, sentAt }: LedgerRow) =>
  event === 'fault' && (eventAt ?? 0) >= (sentAt ?? 0)
