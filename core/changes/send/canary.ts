import type { Ledger } from '../../state/ledger/ledger.ts'
import type { CanaryRow, Count } from '../../state/ledger/queries.ts'
import type { ChangeState } from '../../state/schema.ts'
import { parseBody } from '../body.ts'
import type { ChangeKind, Traits } from '../change-kind.ts'
import { compareDecimals } from '../compare-fields.ts'
import { hasFailed } from '../outcomes.ts'

/** How many changes go first for each breaker key. */
export interface CanarySize {
  size: number
  /** A run that sends no more changes than this needs no canary. */
  unlessAtMost?: number
}

type CanaryOptions = { ledger: Ledger; run: string; kind: ChangeKind } & CanarySize

interface Candidate extends Traits {
  row: number
}

const openStates: readonly ChangeState[] = ['staged', 'sending', 'unknown']
const isOpen = ({ state }: { state: ChangeState }) => openStates.includes(state)

/**
 * Chooses a canary for each breaker key that needs one, and marks its rows in the ledger: a key of which nothing is done,
 * and whose canary was held back completely by checks before sending, or was never chosen. Returns whether it chose any.
 */
export async function markCanary(options: CanaryOptions): Promise<boolean> {
  const { ledger, run, size, unlessAtMost = 0 } = options
  const counts = await ledger.counts({ run })
  // What was sent counts also once it has a result, so that a run that begins again is as large as it was.
  const toSend = counts.map((count) => (isOpen(count) ? count.number : count.tried))
  if (size === 0 || toSend.reduce((sum, number) => sum + number, 0) <= unlessAtMost) return false
  const chosen = new Set((await canaryOf({ ledger, run })).map(({ breakerKey }) => breakerKey))
  const through = doneKeys(counts)
  const rows: number[] = []
  for (const breakerKey of new Set(counts.filter(isOpen).map((count) => count.breakerKey)))
    if (!through.has(breakerKey) && !chosen.has(breakerKey))
      rows.push(...(await chooseCanary({ ...options, breakerKey })))
  await ledger.addToCanary({ run, rows })
  return rows.length > 0
}

/**
 * Marks the canary as above. Returns how many changes of the run have no final state yet, the rows of the canary that have no
 * result yet, in order (those of the breaker keys of which nothing is done), how many may have been sent,
 * and how many of these are of that canary.
 */
export async function openCanary(
  options: CanaryOptions,
): Promise<{ open: number; sent: number; again: number; canary: number[] }> {
  await markCanary(options)
  const counts = await options.ledger.counts(options)
  const through = doneKeys(counts)
  const canary = (await canaryOf(options)).filter(({ breakerKey }) => !through.has(breakerKey))
  return {
    open: counts.reduce((sum, count) => sum + (isOpen(count) ? count.number : 0), 0),
    sent: counts.reduce((sum, count) => sum + count.tried, 0),
    again: canary.filter(({ sends }) => sends > 0).length,
    canary: canary.map(({ row }) => row),
  }
}

/** The keys of which a change was sent and is done: a single success shows that the changes are right. */
const doneKeys = (counts: readonly Count[]): ReadonlySet<string> =>
  new Set(
    counts.flatMap(({ state, tried, breakerKey }) => (state === 'done' && tried > 0 ? [breakerKey] : [])),
  )

/** A change that the check before sending has closed says nothing about sending. */
async function canaryOf({ ledger, run }: { ledger: Ledger; run: string }): Promise<CanaryRow[]> {
  return (await ledger.canaryRows({ run })).filter((row) => isOpen(row) || row.sends > 0)
}

/** The keys of breakers whose canary failed completely, and the rows of the canary that were sent. */
export async function canaryResult({ ledger, run }: { ledger: Ledger; run: string }) {
  const sent = (await ledger.canaryRows({ run })).filter(({ sends }) => sends > 0)
  const failed = [...Map.groupBy(sent, ({ breakerKey }) => breakerKey)].flatMap(([breakerKey, rows]) =>
    rows.every(hasFailed) ? [breakerKey] : [],
  )
  return { rows: sent.map(({ row }) => row), failed }
}

/**
 * Chooses the changes to send first, of those that the service does not have yet: as different as possible, so that mistakes show
 * before the others are sent. The largest amount, the most lines, then the first of each signature, the most frequent
 * signature first. Returns their rows in order; all rows if there are no more than `size`.
 */
export async function chooseCanary({
  ledger,
  run,
  kind,
  size,
  breakerKey,
}: CanaryOptions & { breakerKey?: string }): Promise<number[]> {
  const firsts = new Map<string, { candidate: Candidate; number: number }>()
  const early: number[] = []
  let largest: Candidate | undefined
  let longest: Candidate | undefined
  for await (const change of ledger.rows({ run, state: 'staged' })) {
    const { sends, outcome } = change
    if ((sends > 0 && outcome !== 'absent') || (breakerKey !== undefined && change.breakerKey !== breakerKey))
      continue
    const candidate = { row: change.row, ...kind.traitsOf(parseBody(change)) }
    if (early.length < size) early.push(candidate.row)
    if (largest === undefined || compareDecimals(candidate.amount, largest.amount) > 0) largest = candidate
    if (longest === undefined || candidate.lines > longest.lines) longest = candidate
    const first = firsts.get(candidate.signature)
    if (first !== undefined) first.number += 1
    // Signatures that differ for every row say nothing, and must not fill the memory.
    else if (firsts.size < maxSignatures) firsts.set(candidate.signature, { candidate, number: 1 })
  }
  const bySignature = [...firsts.values()].toSorted((a, b) => b.number - a.number)
  const preferred = [largest, longest, ...bySignature.map(({ candidate }) => candidate)]
  const rows = new Set([...preferred.flatMap((candidate) => candidate?.row ?? []), ...early])
  return [...rows].slice(0, size).toSorted((a, b) => a - b)
}

const maxSignatures = 1_000
