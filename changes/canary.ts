import type { Ledger } from '../state/ledger.ts'
import { parseBody } from './body.ts'
import type { ChangeKind, Traits } from './change-kind.ts'
import { compareDecimals } from './decimals.ts'
import { hasFailed } from './outcomes.ts'

interface Candidate extends Traits {
  row: number
}

/**
 * Chooses the changes that go first: unlike each other, so that what is wrong shows before the rest is sent. The
 * largest amount, the most lines, then the first of each signature, the most frequent signature first.
 * Gives their rows in order; all rows where there are no more than `size`.
 */
export async function chooseCanary({
  ledger,
  run,
  kind,
  size,
  lane,
}: {
  ledger: Ledger
  run: string
  kind: ChangeKind
  size: number
  lane?: string
}): Promise<number[]> {
  const firsts = new Map<string, { candidate: Candidate; number: number }>()
  const early: number[] = []
  let largest: Candidate | undefined
  let longest: Candidate | undefined
  for await (const change of ledger.rows({ run, state: 'staged' })) {
    if (lane !== undefined && change.lane !== lane) continue
    const candidate = { row: change.row, ...kind.traitsOf(parseBody(change)) }
    if (early.length < size) early.push(candidate.row)
    if (largest === undefined || compareDecimals(candidate.amount, largest.amount) > 0) largest = candidate
    if (longest === undefined || candidate.lines > longest.lines) longest = candidate
    const first = firsts.get(candidate.signature)
    if (first !== undefined) first.number += 1
    // A signature that is unlike for every row says nothing, and must not fill the memory.
    else if (firsts.size < mostSignatures) firsts.set(candidate.signature, { candidate, number: 1 })
  }
  const bySignature = [...firsts.values()].toSorted((a, b) => b.number - a.number)
  const preferred = [largest, longest, ...bySignature.map(({ candidate }) => candidate)]
  const rows = new Set([...preferred.flatMap((candidate) => candidate?.row ?? []), ...early])
  return [...rows].slice(0, size).toSorted((a, b) => a - b)
}

const mostSignatures = 1_000

/**
 * The lanes of which every change of a canary failed: one that was done shows that the way is right. What a look
 * kept from being sent says nothing about sending.
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
  const byLane = Map.groupBy(sent, (change) => change?.lane ?? '')
  return [...byLane].flatMap(([lane, canary]) =>
    canary.every((change) => change !== undefined && hasFailed(change)) ? [lane] : [],
  )
}

/**
 * The canary after a canary: of each lane of which nothing was sent, because looks kept all of it from being sent, as
 * many once more. Empty where each lane has told something, or has nothing left to send.
 */
export async function nextCanary({
  rows,
  ...of
}: {
  ledger: Ledger
  run: string
  kind: ChangeKind
  rows: readonly number[]
}): Promise<number[]> {
  const { ledger, run } = of
  const changes = await Promise.all(rows.map((row) => ledger.row({ run, row })))
  const byLane = Map.groupBy(changes, (change) => change?.lane ?? '')
  const untold = [...byLane].filter(([, canary]) => canary.every((change) => (change?.sends ?? 0) === 0))
  const chosen = untold.map(([lane, canary]) => chooseCanary({ ...of, size: canary.length, lane }))
  return (await Promise.all(chosen)).flat().toSorted((a, b) => a - b)
}
