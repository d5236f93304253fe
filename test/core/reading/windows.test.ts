import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BorderSearch, choosePageBelow, usualSizes } from '../../../core/reading/find-window.ts'
import { Frontier, lowOf, toLink, type Window } from '../../../core/reading/window.ts'
import { seed } from './any-list.ts'

const place = fc.integer({ min: 0, max: 2_000_000 })

describe('the window below a place', () => {
  test('holds the place, and no other that holds it reaches further down', () => {
    const property = fc.property(place, (at) => {
      const cut = choosePageBelow(at, usualSizes)
      const low = lowOf(cut)
      expect(low).toBeLessThanOrEqual(at)
      expect(low + cut.pageSize).toBeGreaterThan(at)
      for (let size = 80; size <= 100; size++) expect(at - (at % size)).toBeGreaterThanOrEqual(low)
    })
    fc.assert(property, { seed })
  })

  test('reaches 87 places down on the average, so 100 records cost 1.15 requests', () => {
    let [requests, at] = [0, 1_000_000]
    for (; at > 1; requests++) at = lowOf(choosePageBelow(at, usualSizes)) + 1
    expect(requests / 10_000).toBeLessThan(1.16)
    expect(requests / 10_000).toBeGreaterThan(1.14)
  })
})

describe('a window links', () => {
  const window = (keys: number[], more: Partial<Window> = {}): Window => ({
    page: 2,
    pageSize: 100,
    low: 100,
    records: keys.map((key) => ({ id: String(key) })),
    keys,
    first: keys[0] ?? NaN,
    last: keys.at(-1) ?? NaN,
    descending: false,
    atEnd: false,
    fromTop: false,
    fromStart: false,
    count: 1000,
    follows: true,
    servedAt: undefined,
    ...more,
  })
  const frontier = (at: number, closed = false) => Frontier.from({ at, closed, ids: ['a'] })

  test('by a record strictly newer than the frontier, and never by one that ties with it', () => {
    expect(toLink(window([5, 9, 11]), frontier(10))).toBe('links')
    expect(toLink(window([5, 9, 10]), frontier(10))).toBe('under')
    expect(toLink(window([5, 9]), frontier(10))).toBe('under')
  })

  test('by a record of the frontier where all of its time have been taken', () => {
    expect(toLink(window([5, 9, 10]), frontier(10, true))).toBe('links')
    expect(toLink(window([5, 9]), frontier(10, true))).toBe('under')
  })

  test('only where it goes further down', () => {
    expect(toLink(window([10, 10, 11]), frontier(10))).toBe('stuck')
    expect(toLink(window([11, 12]), frontier(10))).toBe('over')
    expect(toLink(window([10, 11]), frontier(10, true))).toBe('over')
    expect(toLink(window([10, 11], { fromStart: true }), frontier(10))).toBe('links')
  })

  test('at the top by itself, where it reaches down to the frontier', () => {
    expect(toLink(window([5, 8], { fromTop: true }), frontier(10))).toBe('links')
    expect(toLink(window([11, 12], { fromTop: true }), frontier(10))).toBe('over')
    expect(toLink(window([10, 12], { fromTop: true }), frontier(10))).toBe('stuck')
  })

  test('not where it is empty, or no record in it has a time', () => {
    expect(toLink(window([]), frontier(10))).toBe('under')
    expect(toLink(window([], { fromTop: true }), frontier(10))).toBe('over')
  })
})

test('the frontier takes each record once, in a list taken newest first', () => {
  const frontier = new Frontier()
  expect([frontier.take(9, 'a'), frontier.take(9, 'b'), frontier.take(9, 'a')]).toEqual([true, true, false])
  expect([frontier.take(8, 'a'), frontier.take(9, 'c')]).toEqual([true, false])
  expect(Frontier.from(frontier.toState())).toEqual(frontier)
})

test('a search finds a border anywhere in a million places in 30 tries, from no guess or a wrong one', () => {
  const property = fc.property(
    fc.integer({ min: 0, max: 1_000_000 }),
    fc.option(fc.integer({ min: 0, max: 1_100_000 }), { nil: undefined }),
    (border, guess) => {
      const search = new BorderSearch(usualSizes, guess)
      while (search.tries < 30) {
        const cut = choosePageBelow(search.next(), usualSizes)
        const [low, high] = [lowOf(cut), lowOf(cut) + cut.pageSize - 1]
        if (border > high) search.sawUnder(high)
        else if (border < low || (border === low && low > 0)) search.sawOver(low)
        else return true
      }
      return false
    },
  )
  fc.assert(property, { seed, numRuns: 3000 })
})
