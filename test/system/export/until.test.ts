import { expect, test } from 'vitest'
import { until } from './world.ts'

let asked = 0

test.fails('a test waits for what never comes', { timeout: 100 }, () =>
  until(() => {
    asked += 1
    return false
  }),
)

test('it does not go on waiting while others run', async () => {
  const before = asked
  expect(before).toBeGreaterThan(0)
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(asked).toBeLessThanOrEqual(before + 1)
})
