import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { ChangeKind, Seen } from '../change-kind.ts'
import { controlFailure } from './positive-control.ts'
import { attemptsUsed } from '../attempts.ts'
import { parseBody } from '../body.ts'
import { lookUp } from './lookup.ts'
import { move } from '../transitions.ts'
import type { Outcome } from '../outcomes.ts'

export interface SettleOptions {
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
  /** Looks on their way at once. */
  inFlight: number
  /** No look is begun after this long. */
  timeBoxMs: number
  signal?: AbortSignal
  now?: () => number
  /** Called after each look. */
  onProgress?: (settled: SettleResult['settled']) => void
}

export interface Attempts {
  /** A hard bound: see `attemptsUsed`. */
  most: number
  /** The wait after the first, second ... attempt; the last one stays. */
  waitsMs: readonly number[]
}

export interface SettleResult {
  settled: { done: number; staged: number; rejected: number; parked: number }
  /** Still unknown: a look is to come. */
  unknown: number
  /** When the next look is due, ms since 1970; undefined where none is unknown. */
  nextLookAt: number | undefined
}

/** Sent so often without an answer, a change is for a person: something is wrong with it or with the service. */
const mostSends = 3

/**
 * Finds out what became of the unknown changes of a run, those whose look is due. It sends nothing that writes.
 * What is proven absent, or does no harm twice, is staged again; the rest is done, rejected or parked.
 * Throws the errors of the reads; what was settled until then stays settled.
 */
export async function settleChanges(options: SettleOptions): Promise<SettleResult> {
  const settling: Settling = {
    ...options,
    now: options.now ?? Date.now,
    settled: { done: 0, staged: 0, rejected: 0, parked: 0 },
  }
  const deadline = performance.now() + options.timeBoxMs
  const dueRows = async function* () {
    for await (const row of options.ledger.rows({ run: options.run, state: 'unknown' })) {
      if (performance.now() >= deadline || options.signal?.aborted === true) return
      if (lookAt(settling, row) <= settling.now()) yield row
    }
  }
  const rows = dueRows()
  const settleNext = async () => {
    for await (const row of rows) {
      await settleOne(settling, row)
      options.onProgress?.({ ...settling.settled })
    }
  }
  // Several at one iterator: each takes the next row when it has settled its own.
  const ends = await Promise.allSettled(Array.from({ length: options.inFlight }, settleNext))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return { settled: settling.settled, ...(await whatIsLeft(settling)) }
}

interface Settling extends SettleOptions {
  now: () => number
  settled: SettleResult['settled']
}

async function whatIsLeft(settling: Settling) {
  let unknown = 0
  let nextLookAt = Infinity
  for await (const row of settling.ledger.rows({ run: settling.run, state: 'unknown' })) {
    unknown += 1
    nextLookAt = Math.min(nextLookAt, lookAt(settling, row))
  }
  return { unknown, nextLookAt: unknown === 0 ? undefined : nextLookAt }
}

function lookAt({ kind, settleMs, verifyMs = settleMs }: Settling, row: LedgerRow): number {
  if (kind.whenUnknown(parseBody(row)) === 'park') return 0
  if (row.looks === 0) return (row.unknownSince ?? 0) + (row.answeredAt === null ? settleMs : verifyMs)
  return (row.lookedAt ?? 0) + 2 * settleMs
}

async function settleOne(settling: Settling, row: LedgerRow): Promise<void> {
  const what = settling.kind.whenUnknown(parseBody(row))
  if (what === 'lookUp') return await settleByLook(settling, row)
  if (what === 'park') return await park(settling, row, 'cannotLookUp', row.error)
  // It has an answer, though to a later send than the one in doubt.
  if (row.outcome === 'refusedLater') return await park(settling, row, 'refusedLater', row.error)
  if (row.sends >= mostSends) return await park(settling, row, 'sentTooOften', row.error)
  await settle(settling, row, { to: 'staged', by: 'repeat', outcome: 'repeatable' })
}

async function settleByLook(settling: Settling, row: LedgerRow): Promise<void> {
  const seen = await lookUp(settling, row)
  if (seen.seen === 'done') {
    const patch = { answerId: seen.id, error: seen.words ?? null, closedAt: settling.now(), ...sawOf(seen) }
    return await settle(settling, row, { to: 'done', outcome: seen.outcome, patch })
  }
  if (seen.seen === 'unclear') return await park(settling, row, seen.outcome, seen.words)
  if (seen.seen === 'fellBack') return await useUpAttempt(settling, row, seen)
  await settleAbsent(settling, row)
}

/** A first look that finds nothing proves nothing: the request may still take effect. */
async function settleAbsent(settling: Settling, row: LedgerRow): Promise<void> {
  const { ledger, now } = settling
  if (row.looks === 0) {
    const patch = { looks: 1, lookedAt: now() }
    await ledger.move({ id: row.id, from: ['unknown'], sends: row.sends, patch })
    return
  }
  const failure = await controlFailure(settling, row)
  if (failure !== undefined) return await park(settling, row, failure.outcome, failure.words)
  if (row.outcome === 'refusedLater')
    return await settle(settling, row, {
      to: 'rejected',
      outcome: 'refused',
      patch: { closedAt: now() },
    })
  if (row.sends >= mostSends) return await park(settling, row, 'sentTooOften', row.error)
  await settle(settling, row, { to: 'staged', outcome: 'absent' })
}

async function useUpAttempt(
  settling: Settling,
  row: LedgerRow,
  seen: Extract<Seen, { seen: 'fellBack' }>,
): Promise<void> {
  const { outcome, words } = seen
  const { attempts: allowed, now } = settling
  const attempts = attemptsUsed(row)
  const patch = { error: words, closedAt: now(), ...sawOf(seen) }
  if (attempts >= allowed.most) {
    // Nothing is in doubt about it: a later run may try again.
    const usedUp = { ...patch, error: `${words} (attempt ${attempts} of ${allowed.most})`, holdsKey: false }
    return await settle(settling, row, { to: 'parked', outcome: 'attemptsUsedUp', patch: usedUp })
  }
  const wait = allowed.waitsMs[Math.max(0, attempts - 1)] ?? allowed.waitsMs.at(-1) ?? 0
  await settle(settling, row, { to: 'staged', outcome, patch: { ...patch, notBefore: now() + wait } })
}

/** What a look saw takes the place of the answer, which said only that the request was taken. */
const sawOf = ({ saw }: { saw?: unknown }) => (saw === undefined ? {} : { answer: JSON.stringify(saw) })

const park = (settling: Settling, row: LedgerRow, outcome: Outcome, error: string | null) =>
  settle(settling, row, { to: 'parked', outcome, patch: { error, closedAt: settling.now() } })

async function settle(
  settling: Settling,
  row: LedgerRow,
  to: Pick<Parameters<typeof move>[0], 'outcome' | 'patch'> & {
    to: keyof SettleResult['settled']
    by?: 'look' | 'repeat'
  },
): Promise<void> {
  const patch = { lookedAt: settling.now(), looks: row.looks + 1, ...to.patch }
  const moved = await move({ ledger: settling.ledger, row, by: 'look', ...to, patch })
  if (moved) settling.settled[to.to] += 1
}
