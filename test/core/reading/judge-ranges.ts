import * as fc from 'fast-check'
import { toInstant } from '../../../core/billing/instants.ts'
import { joinRanges, planRead, type RangePlan, RangesMismatchError } from '../../../core/reading/ranges.ts'
import type { Range, RangeState, ReadOptions } from '../../../core/reading/range-state.ts'
import { AnyService, whereLostForGood } from './any-service.ts'
import type { ServiceOptions } from './any-ways.ts'
import { createRandom, type DriftingList, type Random, start } from './drifting-list.ts'
import { readInRanges } from './read-in-ranges.ts'

export const anyRangedRead = fc.record({
  crash: fc.constantFrom(0, 0, 0.05, 0.3),
})

export interface Judged {
  verdict: 'proven' | 'unproven' | 'ended by an error'
  ranges: number
  restarts: number
  requests: number
  records: number
  /** What is wrong with it, as sentences. */
  findings: string[]
}

/**
 * Reads a list in one to six ranges and holds what came against what was there. Some ranges begin late, some when
 * others have ended, all at their own pace; their bounds are planned, or lie on records, just below them, or anywhere.
 */
export async function judgeRanges(
  { list: options, ways }: ServiceOptions,
  { crash, mutant }: { crash: number; mutant?: Mutant | undefined },
): Promise<Judged> {
  const asks = ways.asks === 'changes' ? 'all' : ways.asks
  const service = new AnyService({ list: options, ways: { ...ways, asks, maxRequests: undefined } })
  const { list, read } = service
  const random = createRandom(options.seed ^ 0x5bd1e995)
  const most = 1 + Math.floor(random() * 6)
  const isPlanned = random() < 0.3
  const taken = await readInRanges(read, {
    divide: isPlanned ? { count: list.now.length, most } : (of) => anyPlan({ read: of, list, random, most }),
    crash,
    wait: () => Math.floor(random() * (random() < 0.3 ? 3000 : 20)),
    random,
    namesRepeated: ways.odd.includes('repeated'),
    mutant: mutant && ((state) => mutant(state, service)),
  }).catch(whereLostForGood)
  const { requests } = service
  if (taken === undefined)
    return { verdict: 'ended by an error', ranges: 0, restarts: 0, requests, records: 0, findings: [] }
  const { outcome, plan, states, restarts } = taken
  const findings = [...service.judge(taken), ...passing(plan, states).map((what) => `joined, ${what}`)]
  return {
    verdict: outcome.verdict,
    ranges: plan.ranges.length,
    restarts,
    requests,
    records: outcome.records,
    findings,
  }
}

/** Ranges that are not the whole list, or not those of this read, and are joined all the same. */
function passing(plan: RangePlan, states: readonly RangeState[]): string[] {
  const { ranges } = plan
  const isBroken = states.some(({ phase }) => phase === 'pages')
  const changed = (at: number, change: { upTo?: number; downTo?: number }, planned: boolean) => ({
    plan: planned ? { ...plan, ranges: ranges.with(at, withRange(ranges[at]!, change)) } : plan,
    states: states.with(at, withRange(states[at]!, change)),
  })
  const without = (at: number) => ({
    plan: { ...plan, ranges: ranges.toSpliced(at, 1) },
    states: states.toSpliced(at, 1),
  })
  const spoiled: Record<string, { plan: RangePlan; states: readonly RangeState[] }> = {
    'of which one was not read': { plan, states: states.slice(1) },
  }
  for (const [at, { range }] of ranges.entries()) {
    spoiled[`without range ${at}`] = without(at)
    const state = states[at]!
    spoiled[`of which ${at} is of another read`] = {
      plan,
      states: states.with(at, { ...state, startedAt: state.startedAt + 1 }),
    }
    const open = { ...state, phase: 'chain' as const }
    if (!isBroken) spoiled[`of which ${at} has not ended`] = { plan, states: states.with(at, open) }
    if (range.upTo !== undefined) {
      const higher = { upTo: range.upTo + 1 }
      const inverted = { upTo: range.upTo, downTo: range.upTo + 1 }
      const between = <T extends { range?: Range }>(all: readonly T[]) =>
        all.toSpliced(at, 1, withRange(all[at]!, inverted), withRange(all[at]!, higher))
      spoiled[`with a bound before ${at} that rises`] = {
        plan: { ...plan, ranges: between(ranges) },
        states: between(states),
      }
    }
    for (const [name, bound] of Object.entries(range))
      for (const moved of [bound - 1, bound + 1])
        for (const planned of [true, false])
          spoiled[`of which ${at} has ${name} ${moved - bound}${planned ? ' in its plan' : ''}`] = changed(
            at,
            { [name]: moved },
            planned,
          )
  }
  return Object.keys(spoiled).filter((what) => {
    try {
      return joinRanges(spoiled[what]!.plan, spoiled[what]!.states).kind === 'joined'
    } catch (error) {
      if (error instanceof RangesMismatchError) return false
      throw error
    }
  })
}

const withRange = <T extends { range?: Range }>(of: T, change: Partial<Range>): T => ({
  ...of,
  range: { ...of.range, ...change },
})

async function anyPlan(of: {
  read: ReadOptions
  list: DriftingList
  random: Random
  most: number
}): Promise<RangePlan> {
  const { read, list, random, most } = of
  const bounds = new Set<number>()
  for (let bound = 1; bound < most; bound++) bounds.add(anyInstant(list, random))
  const descending = [...bounds].toSorted((one, other) => other - one)
  const anyPlace = () => Math.floor(random() * (list.now.length + 50))
  // The statuses are looked at before.
  const planned = await planRead({ ...read, most: 1 })
  const root = JSON.parse(JSON.stringify(planned.root)) as RangeState
  return {
    root,
    ranges: [undefined, ...descending].map((upTo, at) => {
      const downTo = descending[at]
      const range = {
        ...(upTo !== undefined && { upTo }),
        ...(downTo !== undefined && { downTo }),
      }
      return { range, ...(upTo !== undefined && random() < 0.9 && { place: anyPlace() }) }
    }),
  }
}

/** Just below a record, at one, or anywhere: also beyond both ends of the list. */
function anyInstant(list: DriftingList, random: Random): number {
  const items = list.now
  const item = items[Math.floor(random() * items.length)]
  const how = random()
  if (item === undefined || how < 0.15)
    return start + Math.floor((random() * 1.4 - 0.2) * (items.length + 1) * 500_000)
  return how < 0.5 ? item.at : item.at - 1
}

type Mutant = (state: RangeState, service: AnyService) => Promise<RangeState> | RangeState

/** Each breaks one rule of ranges. The judge must find every one of them. */
export const mutants: Readonly<Record<string, Mutant>> = {
  'a window that links by a record at the frontier': (state) => withFrontier(state, { closed: true }),
  async 'a range that starts with any window'(state, service) {
    const page = Math.floor((state.place ?? 0) / 100) + 1
    const { records } = await service
      .fetchPage({ ordering: 'created', page, pageSize: 100, filters: {} })
      .catch(() => ({ records: [] }))
    const newest = records.at(-1) as { created?: string } | undefined
    const { at = Infinity } = state.frontier ?? {}
    return withFrontier(state, { at: Math.min(at, toInstant(newest?.created) ?? Infinity) })
  },
  'a range that ends just above its lower bound': (state) => withBound(state, 300_000),
  'a bound that belongs to neither range': (state) =>
    withFrontier(state, { at: (state.range?.upTo ?? 0) - 1 }),
  'a bound that belongs to both ranges': (state) => withBound(state, -1),
}

function withFrontier(state: RangeState, change: { at?: number; closed?: true }): RangeState {
  const { frontier } = state
  if (frontier === undefined) return state
  return { ...state, frontier: { ...frontier, ...change } }
}

function withBound(state: RangeState, higher: number): RangeState {
  const { range } = state
  return range?.downTo === undefined
    ? state
    : { ...state, range: { ...range, downTo: range.downTo + higher } }
}
