import { newPass } from '../start-state.ts'
import type { Range, ReadState } from '../state.ts'
import type { RangePlan } from './range-plan.ts'

/** The states of ranges do not belong to their plan, or its ranges leave a gap. */
export class RangesMismatchError extends Error {
  override readonly name = 'RangesMismatchError'
  readonly retryable = false
  constructor() {
    super('The ranges that were read are not those that were planned. Run the export again.')
  }
}

/** `left`: ranges that have not ended, by their number. */
export type Joined = { kind: 'joined'; state: ReadState } | { kind: 'open'; left: number[] }

/**
 * Joins ranges to the state of the whole read. If all are whole, what is left to do is to look for hidden records. If
 * one broke, the list is to be read page by page, whatever the others do.
 *
 * `states`: the last state of each range, undefined where nothing was read.
 *
 * @throws {RangesMismatchError}
 */
export function joinRanges(plan: RangePlan, states: readonly (ReadState | undefined)[]): Joined {
  const { root, ranges } = plan
  if (!isWithoutGap(ranges.map(({ range }) => range)) || states.length !== ranges.length)
    throw new RangesMismatchError()
  for (const [at, state] of states.entries())
    if (state !== undefined && !isOf({ root, range: ranges[at]?.range }, state))
      throw new RangesMismatchError()
  const read = states.filter((state) => state !== undefined)
  const isBroken = read.some(({ pass }) => pass.phase === 'pages')
  const left = [...states.keys()].filter((at) => states[at]?.pass.phase !== 'ended')
  if (left.length > 0 && !isBroken) return { kind: 'open', left }
  return { kind: 'joined', state: merge(root, { read, isBroken }) }
}

function merge(
  root: ReadState,
  { read, isBroken }: { read: readonly ReadState[]; isBroken: boolean },
): ReadState {
  const all = [root, ...read]
  const sum = (number: (state: ReadState) => number) => all.reduce((total, state) => total + number(state), 0)
  const watched = toUnseen(root, read)
  const countAfter = read.at(-1)?.countAfter
  return {
    ...root,
    completeThrough: Math.min(...all.map((state) => state.completeThrough)),
    pass: {
      ...newPass,
      ...(root.countBefore !== undefined && { size: root.countBefore }),
      phase: isBroken ? 'pages' : 'ended',
    },
    ...(watched && { watched }),
    requests: {
      made: sum(({ requests }) => requests.made),
      oddNext: sum(({ requests }) => requests.oddNext),
    },
    counts: {
      windows: sum(({ counts }) => counts.windows),
      linksRepaired: sum(({ counts }) => counts.linksRepaired),
      records: sum(({ counts }) => counts.records),
      rejected: sum(({ counts }) => counts.rejected),
      duplicatesDropped: sum(({ counts }) => counts.duplicatesDropped),
    },
    ...(countAfter !== undefined && { countAfter }),
    seen: {
      ignored: sumByName(all.map(({ seen }) => seen.ignored)),
      testMode: all.some(({ seen }) => seen.testMode),
    },
    ties: all.flatMap(({ ties }) => ties),
    reasons: [...new Set(all.flatMap(({ reasons }) => reasons))],
  }
}

/** The sampled records that no range has met: only these can be hidden. */
function toUnseen({ watched }: ReadState, read: readonly ReadState[]): ReadState['watched'] {
  if (watched === undefined) return undefined
  const isUnseen = (id: string) => read.every((state) => Object.hasOwn(state.watched ?? {}, id))
  return Object.fromEntries(Object.entries(watched).filter(([id]) => isUnseen(id)))
}

function sumByName(counts: readonly Record<string, number>[]): Record<string, number> {
  const total: Record<string, number> = {}
  for (const [name, count] of counts.flatMap((one) => Object.entries(one)))
    total[name] = (total[name] ?? 0) + count
  return total
}

/** Whether the ranges hold every instant exactly once: each begins where the one before it ends, further down. */
function isWithoutGap(ranges: readonly Range[]): boolean {
  const bounds = ranges.map(({ downTo }) => downTo ?? -Infinity)
  return (
    bounds.at(-1) === -Infinity &&
    ranges.every(({ upTo = Infinity }, at) => upTo === (at === 0 ? Infinity : bounds[at - 1])) &&
    ranges.every(({ upTo = Infinity }, at) => upTo > (bounds[at] ?? NaN))
  )
}

function isOf({ root, range }: { root: ReadState; range: Range | undefined }, state: ReadState): boolean {
  return (
    state.startedAt === root.startedAt &&
    state.range !== undefined &&
    state.range.upTo === range?.upTo &&
    state.range.downTo === range?.downTo
  )
}
