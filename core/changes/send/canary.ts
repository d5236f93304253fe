import type { Ledger } from '../../state/ledger/ledger.ts'
import type { ChangeState } from '../../state/schema.ts'
import { parseBody } from '../body.ts'
import type { ChangeKind, Traits } from '../change-kind.ts'
import { compareDecimals } from '../decimals.ts'
import { hasFailed } from '../outcomes.ts'

interface Candidate extends Traits {
  row: number
}

const openStates: readonly ChangeState[] = ['staged', 'sending', 'unknown']

/** The number of changes of a run that have no final state yet. */
export async function countOpen({ ledger, run }: { ledger: Ledger; run: string }): Promise<number> {
  const counts = await ledger.counts({ run })
  return counts.reduce((sum, { state, number }) => sum + (openStates.includes(state) ? number : 0), 0)
}

/**
 * The rows that go first when a run begins, or begins again after a Reset or another start: for each breaker key as many
 * as `size`. What was sent already is among them as long as it has no result. None for a key of which one is done, or of
 * which more than a canary was sent. A claim alone shows nothing about sending.
 */
export async function openCanary(options: {
  ledger: Ledger
  run: string
  kind: ChangeKind
  size: number
  /** A run that sends no more changes than this needs no canary. */
  unlessAtMost?: number
}): Promise<number[]> {
  const { ledger, run, size, unlessAtMost = 0 } = options
  const all = await ledger.counts({ run })
  // What was sent counts also once it has a result, so that a run that begins again is as large as it was.
  const toSend = all.map(({ state, number, tried }) => (openStates.includes(state) ? number : tried))
  if (size === 0 || toSend.reduce((sum, number) => sum + number, 0) <= unlessAtMost) return []
  const rows: number[] = []
  const byKey = Map.groupBy(all, ({ breakerKey }) => breakerKey)
  for (const [breakerKey, counts] of byKey) {
    const tried = counts.reduce((sum, count) => sum + count.tried, 0)
    const isProven = counts.some(({ state, tried: sent }) => state === 'done' && sent > 0)
    const isOpen = counts.some(({ state }) => openStates.includes(state))
    if (!isOpen || isProven || tried > size) continue
    if (tried > 0) rows.push(...(await sentRows({ ledger, run, breakerKey })))
    if (tried < size) rows.push(...(await chooseCanary({ ...options, size: size - tried, breakerKey })))
  }
  return rows.toSorted((a, b) => a - b)
}

async function sentRows(of: { ledger: Ledger; run: string; breakerKey: string }): Promise<number[]> {
  const rows: number[] = []
  for await (const { row, sends, breakerKey } of of.ledger.rows({ run: of.run }))
    if (sends > 0 && breakerKey === of.breakerKey) rows.push(row)
  return rows
}

/**
 * Chooses the changes to send first, of those that were not sent yet: as different as possible, so that mistakes show
 * before the others are sent. The largest amount, the most lines, then the first of each signature, the most frequent
 * signature first. Returns their rows in order; all rows if there are no more than `size`.
 */
export async function chooseCanary({
  ledger,
  run,
  kind,
  size,
  breakerKey,
}: {
  ledger: Ledger
  run: string
  kind: ChangeKind
  size: number
  breakerKey?: string
}): Promise<number[]> {
  const firsts = new Map<string, { candidate: Candidate; number: number }>()
  const early: number[] = []
  let largest: Candidate | undefined
  let longest: Candidate | undefined
  for await (const change of ledger.rows({ run, state: 'staged' })) {
    if (change.sends > 0 || (breakerKey !== undefined && change.breakerKey !== breakerKey)) continue
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

/**
 * Keys of breakers whose canary failed completely: a single success shows that the changes are right. Changes that the
 * check before sending held back say nothing about sending.
 */
export async function failedCanaries({
  ledger,
  run,
  rows,
}: {
  ledger: Ledger
  run: string
  rows: readonly number[]
}): Promise<string[]> {
  const changes = await Promise.all(rows.map((row) => ledger.row({ run, row })))
  const sent = changes.filter((change) => change !== undefined && change.sends > 0)
  const byKey = Map.groupBy(sent, (change) => change?.breakerKey ?? '')
  return [...byKey].flatMap(([breakerKey, canary]) =>
    canary.every((change) => change !== undefined && hasFailed(change)) ? [breakerKey] : [],
  )
}

/**
 * The next canary: for each breaker key whose canary was held back completely by checks before sending, as many changes
 * again. Empty if something was sent for each key, or nothing is left to send.
 */
export async function nextCanary({
  rows,
  ...options
}: {
  ledger: Ledger
  run: string
  kind: ChangeKind
  rows: readonly number[]
}): Promise<number[]> {
  const { ledger, run } = options
  const changes = await Promise.all(rows.map((row) => ledger.row({ run, row })))
  const byKey = Map.groupBy(changes, (change) => change?.breakerKey ?? '')
  const unsent = [...byKey].filter(([, canary]) => canary.every((change) => (change?.sends ?? 0) === 0))
  const chosen = unsent.map(([breakerKey, canary]) =>
    chooseCanary({ ...options, size: canary.length, breakerKey }),
  )
  return (await Promise.all(chosen)).flat().toSorted((a, b) => a - b)
}
