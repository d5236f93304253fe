import { joinRanges, planRead, type RangePlan, startRange } from '../../../core/reading/ranges.ts'
import { readList, readRange } from '../../../core/reading/read-list.ts'
import type { RangeState, ReadOptions } from '../../../core/reading/range-state.ts'
import type { Random } from './drifting-list.ts'
import { createIdSet, readOptions, repeatedIn, type Taken, WrittenRead } from './read-through.ts'

export interface Ranged {
  /** How the list is divided: as planned for so many records and ranges, or by this. */
  divide: { count: number; most: number } | ((options: ReadOptions) => RangePlan | Promise<RangePlan>)
  /** The chance, at each step of a range, that its process dies. */
  crash?: number
  /** Steps to wait before a range begins. */
  wait?: () => number
  random?: Random
  /** Names the ids that come twice, as an export does. Absent where the read itself must not take one twice. */
  namesRepeated?: boolean
  /** Breaks a rule on purpose: changes the state that a range starts from. */
  mutant?: ((state: RangeState) => Promise<RangeState> | RangeState) | undefined
}

/** Reads a list in ranges, all at once, as `readThrough` does in one. */
export async function readInRanges(
  changed: Pick<ReadOptions, 'fetchPage'> & Partial<ReadOptions>,
  how: Ranged,
): Promise<Taken & { plan: RangePlan; states: RangeState[] }> {
  const options: ReadOptions = {
    ...readOptions,
    idSet: () => Promise.reject(new Error('a range needs no set of ids')),
    ...changed,
  }
  const { divide, wait = () => 0, mutant = (state) => state } = how
  const plan =
    typeof divide === 'function' ? await divide(options) : await planRead({ ...options, ...divide })
  const reads = await Promise.all(
    plan.ranges.map(async (planned) => {
      for (let turn = wait(); turn > 0; turn--) await Promise.resolve()
      const { state, ...read } = await readOne(options, {
        ...how,
        start: await mutant(startRange(plan, planned)),
      })
      // The comparison with the plan would notice some mutants: the reads have to show them.
      return { ...read, state: { ...state, range: planned.range } }
    }),
  )
  const states = reads.map(({ state }) => JSON.parse(JSON.stringify(state)) as RangeState)
  const joined = joinRanges(plan, states)
  if (joined.kind === 'open') throw new Error(`ranges that have not ended: ${joined.left.join(', ')}`)
  const written = new WrittenRead()
  for (const read of reads) written.join(read.written)
  const idSet = () => Promise.resolve(createIdSet(written.ids))
  const rest = readList({
    ...options,
    state: joined.state,
    idSet,
    ...(how.namesRepeated === true && { repeatedIds: () => Promise.resolve(repeatedIn(written.ids)) }),
  })
  const restarts = reads.reduce((sum, read) => sum + read.restarts, 0)
  for (;;) {
    const step = await rest.next()
    if (step.done === true) {
      return { outcome: step.value, ...written.taken, restarts, plan, states }
    }
    written.add(step.value)
  }
}

async function readOne(
  options: ReadOptions,
  { start, crash = 0, random = () => 1 }: Ranged & { start: RangeState },
): Promise<{ written: WrittenRead; state: RangeState; restarts: number }> {
  let kept = new WrittenRead()
  let checkpoint = JSON.stringify(start)
  let last = start
  for (let restarts = 0; ; restarts++) {
    const written = kept.copy()
    const read = readRange({ ...options, state: JSON.parse(checkpoint) as RangeState })
    for (;;) {
      const step = await read.next()
      if (step.done === true) return { written, state: last, restarts }
      last = step.value.state
      written.add(step.value)
      if (random() < 0.5) {
        checkpoint = JSON.stringify(step.value.state)
        kept = written.copy()
      }
      if (restarts < 200 && random() < crash) break
    }
    await read.return()
  }
}
