import type { RangePlan } from './plan-read.ts'
import type { Range, RangeState } from './range-state.ts'

/** The states of ranges do not belong to their plan, or its ranges leave a gap. */
export class RangesMismatchError extends Error {
  override readonly name = 'RangesMismatchError'
  readonly retryable = false
  constructor() {
    super('The ranges that were read are not those that were planned. Run the export again.')
  }
}

/** `left`: ranges that have not ended, by their number. */
export type Joined = { kind: 'joined'; state: RangeState } | { kind: 'open'; left: number[] }

/**
 * Joins ranges to the state of the whole read. If all are whole, what is left to do is to look for hidden records. If
 * one broke, the list is to be read page by page, whatever the others do.
 *
 * `states`: the last state of each range, undefined where nothing was read.
 *
 * @throws {RangesMismatchError}
 */
export function joinRanges(plan: RangePlan, states: readonly (RangeState | undefined)[]): Joined {
  const { root, ranges } = plan
  if (
    !isWithoutGap(
      root.range,
      ranges.map(({ range }) => range),
    ) ||
    states.length !== ranges.length
  )
    throw new RangesMismatchError()
  for (const [index, state] of states.entries())
    if (state !== undefined && !isOf({ root, range: ranges[index]?.range }, state))
      throw new RangesMismatchError()
  const read = states.filter((state) => state !== undefined)
  const isBroken = read.some(({ phase }) => phase === 'pages')
  const left = [...states.keys()].filter((index) => states[index]?.phase !== 'ended')
  if (left.length > 0 && !isBroken) return { kind: 'open', left }
  return { kind: 'joined', state: merge(root, { read, isBroken }) }
}

function merge(
  root: RangeState,
  { read, isBroken }: { read: readonly RangeState[]; isBroken: boolean },
): RangeState {
  const all = [root, ...read]
  const { watched } = root
  const [first] = read
  const countBefore = root.countBefore ?? first?.countBefore
  const countAfter = read.at(-1)?.countAfter
  return {
    ...root,
    completeThrough: Math.min(...all.map((state) => state.completeThrough)),
    size: root.countBefore,
    ...(countBefore !== undefined && { countBefore }),
    phase: isBroken ? 'pages' : 'ended',
    // Only sampled records that no range has met can be hidden.
    ...(watched && {
      watched: Object.fromEntries(
        Object.entries(watched).filter(([id]) =>
          read.every((state) => Object.hasOwn(state.watched ?? {}, id)),
        ),
      ),
    }),
    requests: sumByName(all.map(({ requests }) => requests)),
    counts: sumByName(all.map(({ counts }) => counts)),
    ...(countAfter !== undefined && { countAfter }),
    seen: {
      ignored: sumByName(all.map(({ seen }) => seen.ignored)),
      testMode: all.some(({ seen }) => seen.testMode),
    },
    capped: read.some(({ capped }) => capped),
    ...(read.at(-1)?.sawBound && { sawBound: true }),
    ties: all.flatMap(({ ties }) => ties),
    reasons: [...new Set(all.flatMap(({ reasons }) => reasons))],
  }
}

function sumByName<Name extends string>(all: readonly Record<Name, number>[]): Record<Name, number> {
  const total: Record<string, number> = {}
  for (const [name, number] of all.flatMap((one) => Object.entries<number>(one)))
    total[name] = (total[name] ?? 0) + number
  return total
}

/** Whether the ranges hold every instant of the read once: each begins where the one before it ends, further down. */
function isWithoutGap(whole: Range, ranges: readonly Range[]): boolean {
  const bounds = ranges.map(({ downTo }) => downTo ?? -Infinity)
  return (
    bounds.at(-1) === (whole.downTo ?? -Infinity) &&
    ranges.every(({ upTo = Infinity }, index) => upTo === (index === 0 ? Infinity : bounds[index - 1])) &&
    ranges.every(({ upTo = Infinity }, index) => upTo > (bounds[index] ?? NaN))
  )
}

function isOf({ root, range }: { root: RangeState; range: Range | undefined }, state: RangeState): boolean {
  return (
    state.startedAt === root.startedAt &&
    state.range.upTo === range?.upTo &&
    state.range.downTo === range?.downTo
  )
}
