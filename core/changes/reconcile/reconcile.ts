import { KeyHeldError } from '../../state/errors.ts'
import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { ChangeKind, Seen } from '../change-kind.ts'
import { controlFailure } from './positive-control.ts'
import { attemptsUsed } from '../attempts.ts'
import { parseBody } from '../body.ts'
import { lookUp } from './lookup.ts'
import { move } from '../transitions.ts'
import { holdersOfKey } from '../ledger-gap.ts'
import { type Outcome, outcomes } from '../outcomes.ts'

export interface ReconcileOptions {
  ledger: Ledger
  run: string
  kind: ChangeKind
  /** With the run's share of the rate. */
  billing: Billing
  /** How long a lost request may still take effect: the first look comes that long after, the second twice that. */
  settleMs: number
  /** How long what the service has taken may need to show (a charge); `settleMs` where it is left out. */
  verifyMs?: number
  /** For kinds whose attempts are used up (resumes). */
  attempts: Attempts
  /** Lookups in flight at once. */
  inFlight: number
  /** No lookup begins after this long. */
  timeBoxMs: number
  signal?: AbortSignal
  /** Called after each lookup. */
  onProgress?: () => void
  now?: () => number
}

export interface Attempts {
  /** A hard bound: see `attemptsUsed`. */
  most: number
  /** The wait after the first, second ... attempt; the last one stays. */
  waitsMs: readonly number[]
}

export interface ReconcileResult {
  reconciled: { done: number; staged: number; rejected: number; parked: number }
  /** Still unknown: a lookup is to come. */
  unknown: number
  /** When the next lookup is due, ms since 1970; undefined where none is unknown. */
  nextLookupAt: number | undefined
}

/** Sent so often without an answer, a change is for a person: something is wrong with it or with the service. */
const mostSends = 3

/**
 * Reconciles the unknown changes of a run whose lookup is due. It sends nothing that writes.
 * What is proven absent, or does no harm twice, is staged again; the rest is done, rejected or parked.
 * Throws the errors of the reads; what was reconciled until then stays so.
 */
export async function reconcileChanges(options: ReconcileOptions): Promise<ReconcileResult> {
  const reconciling: Reconciling = {
    ...options,
    now: options.now ?? Date.now,
    reconciled: { done: 0, staged: 0, rejected: 0, parked: 0 },
  }
  const deadline = performance.now() + options.timeBoxMs
  const dueRows = async function* () {
    for await (const row of options.ledger.rows({ run: options.run, state: 'unknown' })) {
      if (performance.now() >= deadline || options.signal?.aborted === true) return
      if (lookupAt(reconciling, row) <= reconciling.now()) yield row
    }
  }
  const rows = dueRows()
  const reconcileNext = async () => {
    for await (const row of rows) {
      await reconcileOne(reconciling, row)
      options.onProgress?.()
    }
  }
  // Several at one iterator: each takes the next row when it has reconciled its own.
  const ends = await Promise.allSettled(Array.from({ length: options.inFlight }, reconcileNext))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return { reconciled: reconciling.reconciled, ...(await countRemaining(reconciling)) }
}

interface Reconciling extends ReconcileOptions {
  now: () => number
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
  if (row.looks === 0) return (row.unknownSince ?? 0) + (row.answeredAt === null ? settleMs : verifyMs)
  return (row.lookedAt ?? 0) + 2 * settleMs
}

async function reconcileOne(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  const what = reconciling.kind.whenUnknown(parseBody(row))
  if (what === 'lookUp') return await reconcileByLookup(reconciling, row)
  if (what === 'park') return await park(reconciling, row, 'cannotLookUp', row.error)
  // It has an answer, though to a later send than the one in doubt.
  if (row.outcome === 'refusedLater') return await park(reconciling, row, 'refusedLater', row.error)
  if (row.sends >= mostSends) return await park(reconciling, row, 'sentTooOften', row.error)
  await close(reconciling, row, { to: 'staged', by: 'repeat', outcome: 'repeatable' })
}

async function reconcileByLookup(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  const seen = await lookUp(reconciling, row)
  if (seen.seen === 'done') {
    const patch = {
      answerId: seen.id,
      error: seen.words ?? null,
      closedAt: reconciling.now(),
      ...sawOf(seen),
    }
    return await close(reconciling, row, { to: 'done', outcome: seen.outcome, patch })
  }
  if (seen.seen === 'unclear') return await park(reconciling, row, seen.outcome, seen.words)
  if (seen.seen === 'fellBack') return await useUpAttempt(reconciling, row, seen)
  await closeAbsent(reconciling, row)
}

/** A first look that finds nothing proves nothing: the request may still take effect. */
async function closeAbsent(reconciling: Reconciling, row: LedgerRow): Promise<void> {
  const { ledger, now } = reconciling
  if (row.looks === 0) {
    const patch = { looks: 1, lookedAt: now() }
    await ledger.move({ id: row.id, from: ['unknown'], sends: row.sends, patch })
    return
  }
  const failure = await controlFailure(reconciling, row)
  if (failure !== undefined) return await park(reconciling, row, failure.outcome, failure.words)
  if (row.outcome === 'refusedLater')
    return await close(reconciling, row, {
      to: 'rejected',
      outcome: 'refused',
      patch: { closedAt: now() },
    })
  if (row.sends >= mostSends) return await park(reconciling, row, 'sentTooOften', row.error)
  await close(reconciling, row, { to: 'staged', outcome: 'absent' })
}

async function useUpAttempt(
  reconciling: Reconciling,
  row: LedgerRow,
  seen: Extract<Seen, { seen: 'fellBack' }>,
): Promise<void> {
  const { outcome, words } = seen
  const { attempts: allowed, now } = reconciling
  const attempts = attemptsUsed(row)
  const patch = { error: words, closedAt: now(), ...sawOf(seen) }
  if (attempts >= allowed.most) {
    // Nothing is in doubt about it: a later run may try again.
    const usedUp = { ...patch, error: `${words} (attempt ${attempts} of ${allowed.most})`, holdsKey: false }
    return await close(reconciling, row, { to: 'parked', outcome: 'attemptsUsedUp', patch: usedUp })
  }
  const wait = allowed.waitsMs[Math.max(0, attempts - 1)] ?? allowed.waitsMs.at(-1) ?? 0
  await close(reconciling, row, { to: 'staged', outcome, patch: { ...patch, notBefore: now() + wait } })
}

/** What a look saw takes the place of the answer, which said only that the request was taken. */
const sawOf = ({ saw }: { saw?: unknown }) => (saw === undefined ? {} : { answer: JSON.stringify(saw) })

const park = (reconciling: Reconciling, row: LedgerRow, outcome: Outcome, error: string | null) =>
  close(reconciling, row, { to: 'parked', outcome, patch: { error, closedAt: reconciling.now() } })

type Closing = Pick<Parameters<typeof move>[0], 'outcome' | 'patch'> & {
  to: keyof ReconcileResult['reconciled']
  by?: 'look' | 'repeat'
}

async function close(reconciling: Reconciling, row: LedgerRow, to: Closing): Promise<void> {
  const { ledger, now } = reconciling
  // Only what holds its key may be sent.
  const isToSend = to.to === 'staged'
  const patch = { lookedAt: now(), looks: row.looks + 1, ...(isToSend && { holdsKey: true }), ...to.patch }
  try {
    const moved = await move({ ledger, row, by: 'look', ...to, patch })
    if (moved) reconciling.reconciled[to.to] += 1
  } catch (error) {
    if (!isToSend || !(error instanceof KeyHeldError)) throw error
    await leaveToHolder(reconciling, row, to)
  }
}

/** Another run took the key of what a ledger that was put back calls closed: this one may not send it again. */
async function leaveToHolder(reconciling: Reconciling, row: LedgerRow, { outcome, patch }: Closing) {
  const [holder] = await holdersOfKey({ ledger: reconciling.ledger, row })
  const error = `${patch?.error ?? outcomes[outcome]}; row ${holder?.row} of the run ${holder?.run} has it by now`
  await park(reconciling, row, outcome, error)
}
