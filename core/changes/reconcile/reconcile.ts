import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { ChangeKind, LookupResult } from '../change-kind.ts'
import { attemptsUsed, parseBody } from '../body.ts'
import { controlFailure, explainRefusal, lookUp } from './lookup.ts'
import { transition } from '../transitions.ts'
import type { Outcome } from '../outcomes.ts'

export interface ReconcileOptions {
  ledger: Ledger
  run: string
  kind: ChangeKind
  /** With the run's share of the rate. */
  billing: Billing
  /** How long a lost request may still take effect: the first lookup comes that long after it, the second twice as long after the first. */
  settleMs: number
  /** How long an accepted request (a charge) may need to show its effect. Default `settleMs`. */
  verifyMs?: number
  /** For kinds whose attempts are used up (resumes). */
  attempts: Attempts
  /** Lookups in flight at once. */
  concurrency: number
  /** No lookup begins after this long. */
  timeBoxMs: number
  signal?: AbortSignal
}

export interface Attempts {
  /** A hard bound: see `attemptsUsed`. */
  most: number
  /** The wait after the first, second ... attempt; the last one stays. */
  waitsMs: readonly number[]
}

export interface ReconcileResult {
  reconciled: { done: number; staged: number; rejected: number; parked: number; dropped: number }
  /** Still unknown: a lookup is due later. */
  unknown: number
  /** When the next lookup is due, ms since 1970; undefined if none is unknown. */
  nextLookupAt: number | undefined
}

/** After so many sends without an answer a change is parked: something is wrong with it or with the service. */
const maxSends = 3

/**
 * Reconciles the unknown changes of a run whose lookup is due. It sends nothing that writes.
 * A change that is proven absent or safe to repeat is staged again; all others become done, rejected or parked.
 * @throws the errors of the reads; changes reconciled before that stay so
 */
export async function reconcileChanges(options: ReconcileOptions): Promise<ReconcileResult> {
  const reconciling: Reconciling = {
    ...options,
    reconciled: { done: 0, staged: 0, rejected: 0, parked: 0, dropped: 0 },
  }
  const deadline = performance.now() + options.timeBoxMs
  const dueRows = async function* () {
    for await (const row of options.ledger.rows({ run: options.run, state: 'unknown' })) {
      if (performance.now() >= deadline || options.signal?.aborted === true) return
      if (lookupAt(reconciling, row) <= reconciling.ledger.now()) yield row
    }
  }
  const rows = dueRows()
  const reconcileNext = async () => {
    for await (const row of rows) await reconcileOne(reconciling, row)
  }
  // Several workers share one iterator: each takes the next row when it has reconciled its own.
  const ends = await Promise.allSettled(Array.from({ length: options.concurrency }, reconcileNext))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return { reconciled: reconciling.reconciled, ...(await countRemaining(reconciling)) }
}

interface Reconciling extends ReconcileOptions {
  reconciled: ReconcileResult['reconciled']
}

async function countRemaining(reconciling: Reconciling) {
  let unknown = 0
  let nextLookupAt = Infinity
  for await (const row of reconciling.ledger.rows({ run: reconciling.run, state: 'unknown' })) {
    unknown += 1
    nextLookupAt = Math.min(nextLookupAt, lookupAt(reconciling, row))
  }
  return { unknown, nextLookupAt: unknown === 0 ? undefined : nextLookupAt }
}

function lookupAt({ kind, settleMs, verifyMs = settleMs }: Reconciling, row: LedgerRow): number {
  if (kind.whenUnknown(parseBody(row)) === 'park') return 0
  if (row.lookups === 0) return (row.unknownSince ?? 0) + (row.answeredAt === null ? settleMs : verifyMs)
  return (row.checkedAt ?? 0) + 2 * settleMs
}

async function reconcileOne(reconciling: Reconciling, row: LedgerRow): Promise<void> {
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
  const explained = await explainRefusal({ ...reconciling, row })
  if (explained !== undefined) reconciling.reconciled[explained] += 1
  else
    await close(reconciling, row, {
      to: 'rejected',
      outcome: 'refused',
      patch: { closedAt: reconciling.ledger.now() },
    })
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

type Closing = Pick<Parameters<typeof transition>[0], 'outcome' | 'patch'> & {
  to: keyof ReconcileResult['reconciled']
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
  const moved = await transition({ ledger, row, by: 'lookup', ...to, patch })
  if (moved) reconciling.reconciled[to.to] += 1
}

const hasFault = ({ event, eventAt, sentAt }: LedgerRow) =>
  event === 'fault' && (eventAt ?? 0) >= (sentAt ?? 0)
