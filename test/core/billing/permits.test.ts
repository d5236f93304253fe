import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GrantClock } from '../../../core/billing/permits.ts'

const seed = 20261124

interface Question {
  /** Time since the question before. */
  pauseMs: number
  toStoreMs: number
  backMs: number
  /** How fast the store's clock moves against this one, until the next question. */
  drift: number
}

const times = {
  pauseMs: fc.double({ min: 0, max: 20_000, noNaN: true }),
  toStoreMs: fc.double({ min: 0.1, max: 40, noNaN: true }),
  backMs: fc.double({ min: 0.1, max: 40, noNaN: true }),
}
const questionsOf = (mostDrift: number) =>
  fc.array(fc.record({ ...times, drift: fc.double({ min: -mostDrift, max: mostDrift, noNaN: true }) }), {
    minLength: 1,
    maxLength: 30,
  })

/** Asks one question after the other; gives when each grant was made, what was known of it, and by the question alone. */
function ask(questions: readonly Question[], jumps: ReadonlyMap<number, number> = new Map()) {
  const clock = new GrantClock()
  let now = 0
  let store = 1_795_000_000_000
  const pass = (ms: number, drift: number) => {
    now += ms
    store += ms * (1 + drift)
  }
  return questions.map(({ pauseMs, toStoreMs, backMs, drift }, index) => {
    pass(pauseMs, drift)
    store += jumps.get(index) ?? 0
    const askedAt = now
    pass(toStoreMs, drift)
    const [madeAt, at] = [now, store]
    pass(backMs, drift)
    const answeredAt = now
    return { madeAt, askedAt, answeredAt, ...clock.madeBetween({ at, askedAt, answeredAt }) }
  })
}

// The clocks are compared in numbers of some 1.8e12, whose last digit is 0.0002 ms.
const roundingMs = 0.001

test('a grant was made when its clock says, whatever answers took and however the clocks drift', () => {
  fc.assert(
    fc.property(questionsOf(0.0006), (questions) => {
      for (const { madeAt, askedAt, answeredAt, earliest, latest } of ask(questions)) {
        expect(madeAt).toBeGreaterThanOrEqual(earliest - roundingMs)
        expect(madeAt).toBeLessThanOrEqual(latest + roundingMs)
        expect(earliest).toBeGreaterThanOrEqual(askedAt - roundingMs)
        expect(latest).toBeLessThanOrEqual(answeredAt + roundingMs)
      }
    }),
    { seed, numRuns: 1_000 },
  )
})

test('one quick answer tells for the slow ones of the next seconds when their grants were made', () => {
  const slow = { pauseMs: 30, toStoreMs: 1, backMs: 15, drift: 0.0005 }
  const [before, , after, ...later] = ask([
    slow,
    { ...slow, toStoreMs: 0.2, backMs: 0.3 },
    slow,
    ...Array.from({ length: 20 }, () => slow),
  ])
  const widthOf = (one: typeof before) => (one === undefined ? NaN : one.latest - one.earliest)
  expect(widthOf(before)).toBeCloseTo(16)
  expect(widthOf(after)).toBeLessThan(0.7)
  expect(widthOf(later.at(-1))).toBeLessThan(3)
})

test('after the clock of the store was set, the last question counts alone, and soon the next ones together', () => {
  const quick = { pauseMs: 30, toStoreMs: 0.5, backMs: 0.5, drift: 0 }
  for (const jump of [-3_600_000, -20, 20, 3_600_000]) {
    const answers = ask([quick, quick, { ...quick, backMs: 10 }, quick, quick], new Map([[2, jump]]))
    for (const { madeAt, earliest, latest } of answers) {
      expect(madeAt).toBeGreaterThanOrEqual(earliest - roundingMs)
      expect(madeAt).toBeLessThanOrEqual(latest + roundingMs)
    }
  }
})

test('a permit is due after the latest time of its grant, and void by the earliest', () => {
  const grant = { first: 7, waitsMs: [-5, 10], retryMs: 1, heldByRun: false, workers: 1, at: 0 }
  const permits = new GrantClock().toPermits({ grant, requestsPerSecond: 100, askedAt: 100, answeredAt: 104 })
  expect(permits.map(({ number, dueAt }) => [number, dueAt])).toEqual([
    [7, 99],
    [8, 114],
  ])
  // Of a worker that is alone, a permit is valid for 30 ms at this rate.
  expect(permits.map(({ voidAt }) => Math.round(voidAt))).toEqual([125, 140])
})

test('a clock that moves faster than allowed makes no time of a grant wrong by more than its question took', () => {
  fc.assert(
    fc.property(questionsOf(0.1), (questions) => {
      for (const { askedAt, answeredAt, earliest, latest } of ask(questions)) {
        expect(earliest).toBeGreaterThanOrEqual(askedAt - roundingMs)
        expect(latest).toBeLessThanOrEqual(answeredAt + roundingMs)
        expect(earliest).toBeLessThanOrEqual(latest)
      }
    }),
    { seed, numRuns: 1_000 },
  )
})
