/** What a service may do, in any mix, and mixes in which what is rare otherwise happens often. */
import * as fc from 'fast-check'
import { statusesOf } from '../../../core/billing/resources/filters.ts'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import { anyList, chance } from './any-list.ts'
import { type ListOptions, quiet } from './drifting-list.ts'

export const statuses = statusesOf(subscriptions)
const some = <One>(values: readonly One[]): fc.Arbitrary<One[]> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant<One[]>([]) }, fc.subarray([...values]))
export const oddRecords = [
  'nameless',
  'prototype',
  'characters',
  'number',
  'repeated',
  'undated',
  'unchanged',
] as const

const anyWays = fc.record({
  hasStatuses: fc.boolean(),
  /** How many statuses the records have. */
  statusesUsed: chance(1, 2, 5),
  hidden: some(statuses),
  moves: chance(0, 0, 0.5),
  floods: chance(0, 0, 0.02, 0.1),
  /** Statuses for which the filter is refused, or not followed: by these orders alone, or by all. */
  refused: some(statuses),
  ignored: some(statuses),
  orders: some(['created', '-created', '-updated']),
  /** The order of changes is refused, or another one is shown. */
  updated: fc.constantFrom('shown', 'shown', 'refused', 'created'),
  odd: some(oddRecords),
  /** `old`: of any age, for as many requests, for each filter or for each page. */
  count: fc.constantFrom('true', 'true', 'absent', 'old', 'oldOfPage'),
  isCut: fc.boolean(),
  next: fc.constantFrom('address', 'relative', 'absent', 'null', 'odd'),
  isEmptyPastEnd: fc.boolean(),
  /** The largest page, or the size of every page, for so many requests each. */
  caps: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    fc.array(
      fc.record({ cap: chance(10, 20, 50, 99, 100, 250), isFixed: chance(0, 0, 1), requests: chance(3, 30) }),
      { maxLength: 3 },
    ),
  ),
  deepest: chance(Infinity, Infinity, Infinity, 200),
  date: fc.constantFrom('absent', 'present', 'sometimes'),
  /** Chances that a cache, or a server that stood still, answers with what it had before the read. */
  caches: chance(0, 0, 0.02, 0.2),
  lagMs: chance(0, 0, 5_000, 60_000),
  asks: fc.constantFrom('all', 'all', 'all', 'status', 'search', 'changes'),
  maxRequests: fc.constantFrom(undefined, undefined, undefined, 12),
})
export type Ways = typeof anyWays extends fc.Arbitrary<infer One> ? One : never

export interface ServiceOptions {
  list: ListOptions
  ways: Ways
}

const wild: fc.Arbitrary<ServiceOptions> = fc.record({ list: anyList, ways: anyWays })
const still = { countLag: 0, replicaLag: 0, gatewayFaults: 0, shortWindows: 0 }
const plain = { asks: 'all', maxRequests: undefined, odd: [], caches: 0, deepest: Infinity } as const

/** Whose statuses, of which some are hidden, are what happens most: a rare mix otherwise. */
const amongStatuses = wild.map(({ list, ways }): ServiceOptions => ({
  list: { ...list, ...still, size: 100 + list.size, drift: quiet },
  ways: {
    ...ways,
    ...plain,
    odd: [],
    hasStatuses: true,
    moves: 0,
    floods: 0.04,
    statusesUsed: Math.max(2, ways.statusesUsed),
    hidden: [statuses[list.seed % 2] ?? '', ...ways.hidden.slice(2)],
    caps: [{ cap: list.seed % 3 === 0 ? 100 : 20, isFixed: 0, requests: Infinity }],
    next: 'address',
  },
}))

/** With more records of one time than a page holds, which are counted wrongly, or among which older ones come and go. */
const amongTies = wild.map(({ list, ways }): ServiceOptions => {
  const isCounted = list.seed % 3 === 1
  const groups = [{ records: 120 + (list.seed % 280), after: list.seed % 4 === 0 ? 0.5 : 1 }]
  const drift = isCounted ? { ...quiet, deletes: 0.2, restores: 0.2, tiedInserts: 0.03 } : quiet
  return {
    list: { ...list, ...still, size: 2 + (list.size % 100), ties: 0, groups, drift, shuffledTies: false },
    ways: {
      ...ways,
      ...plain,
      odd: [],
      hasStatuses: false,
      caps: [],
      next: 'address',
      isCut: true,
      count: isCounted ? 'true' : 'old',
    },
  }
})

export const anyService = fc.oneof(wild, { weight: 2, arbitrary: amongStatuses }, amongTies)

/** The same, without all that may cost the proof. */
export const anyHarmless = wild.map(({ list, ways }): ServiceOptions => ({
  list: {
    ...list,
    drift: quiet,
    countLag: 0,
    replicaLag: 0,
    gatewayFaults: 0,
    shortWindows: 0,
    shuffledTies: false,
  },
  ways: {
    ...ways,
    moves: 0,
    floods: 0,
    refused: [],
    ignored: [],
    caches: 0,
    deepest: Infinity,
    maxRequests: undefined,
    odd: ways.odd.filter(
      (kind) =>
        kind !== 'repeated' && kind !== 'undated' && (kind !== 'unchanged' || ways.asks !== 'changes'),
    ),
    count: 'true',
    caps: ways.caps
      .slice(0, 1)
      .map(({ cap }) => ({ cap: Math.max(50, cap), isFixed: 0, requests: Infinity })),
    updated: ways.asks === 'changes' ? 'shown' : ways.updated,
    // Where no `next` says that more follows, a short page may be one from which records were removed.
    next: 'address',
  },
}))
