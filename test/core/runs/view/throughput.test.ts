import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Pace } from '../../../../core/runs/view/throughput.ts'

const begun = Date.UTC(2026, 10, 21, 2)

test('keeps every count in a bounded size, whatever the order and however long it takes', () => {
  const steps = fc.array(fc.record({ at: fc.nat(40 * 3_600_000), count: fc.nat(500) }), { maxLength: 300 })
  fc.assert(
    fc.property(steps, (steps) => {
      const pace = new Pace()
      for (const { at, count } of steps) pace.add(begun + at, count)
      const { counts } = pace.state()
      expect(Object.keys(counts).length).toBeLessThanOrEqual(120)
      const points = pace.points()
      const all = steps.reduce((sum, { count }) => sum + count, 0)
      expect(points.at(-1)?.done ?? 0).toBe(all)
      for (const [at, point] of points.entries()) {
        const before = points[at - 1]
        if (before === undefined) continue
        expect(point.at).toBeGreaterThan(before.at)
        expect(point.done).toBeGreaterThanOrEqual(before.done)
      }
    }),
    { seed: 7 },
  )
})

test('goes on from its state in another process', () => {
  const [whole, first] = [new Pace(), new Pace()]
  for (let at = 0; at < 500; at += 1) {
    whole.add(begun + at * 997, at)
    if (at < 250) first.add(begun + at * 997, at)
  }
  const second = new Pace(JSON.parse(JSON.stringify(first.state())))
  for (let at = 250; at < 500; at += 1) second.add(begun + at * 997, at)
  expect(second.points()).toEqual(whole.points())
})
