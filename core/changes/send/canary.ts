import type { Ledger } from '../../state/ledger/ledger.ts'
import { parseBody } from '../body.ts'
import type { ChangeKind, Traits } from '../change-kind.ts'
import { compareDecimals } from '../decimals.ts'
import { hasFailed } from '../outcomes.ts'

interface Candidate extends Traits {
  row: number
}

/** The changes of a run that have no final state yet. */
export interface Unfinished {
  open: number
  breakerKeys: string[]
  /** No request of the run has left, so that a canary goes first. A claim alone shows nothing about sending. */
  isUntried: boolean
}

export async function countUnfinished({ ledger, run }: { ledger: Ledger; run: string }): Promise<Unfinished> {
  const counts = await ledger.counts({ run })
  const open = counts.filter(({ state }) => state === 'staged' || state === 'sending' || state === 'unknown')
  return {
    open: open.reduce((sum, { number }) => sum + number, 0),
    breakerKeys: [...new Set(open.map(({ breakerKey }) => breakerKey))],
    isUntried: counts.every(({ tried }) => tried === 0),
  }
}

/**
 * Chooses the changes to send first: as different as possible, so that mistakes show before the others are sent. The
 * largest amount, the most lines, then the first of each signature, the most frequent signature first.
 * Returns their rows in order; all rows if there are no more than `size`.
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
    if (breakerKey !== undefined && change.breakerKey !== breakerKey) continue
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
