import { expect, test } from 'vitest'
import { createServiceHealth } from '../../worker/telemetry/health.ts'

function health(answers: (number | undefined)[]) {
  let time = 0
  let asked = 0
  const made = createServiceHealth({
    now: () => time,
    ping: async () => {
      asked += 1
      made.record({ status: answers.shift() })
    },
  })
  return { ...made, asked: () => asked, wait: (seconds: number) => (time += seconds * 1000) }
}

test('believes a good answer for a minute, a bad one for five seconds, and asks once for all who look', async () => {
  const { check, asked, wait } = health([200, 503, undefined, 429])
  expect(await Promise.all([check(), check(), check()])).toMatchObject([
    { ok: true },
    { ok: true },
    { ok: true },
  ])
  expect(asked()).toBe(1)
  wait(59)
  expect(await check()).toEqual({ ok: true, message: 'it answered 200' })
  expect(asked()).toBe(1)
  wait(2)
  expect(await check()).toEqual({ ok: false, message: 'it answered 503' })
  wait(4)
  await check()
  expect(asked()).toBe(2)
  wait(2)
  expect(await check()).toEqual({ ok: false, message: 'no complete answer came' })
  wait(6)
  expect(await check()).toMatchObject({ ok: true })
})

test.each([
  [200, true],
  [404, true],
  [429, true],
  [401, false],
  [403, false],
  [500, false],
  [undefined, false],
])('a service that answers %s is well: %s', async (status, ok) => {
  const { check, record, asked } = health([])
  record({ status })
  expect((await check()).ok).toBe(ok)
  expect(asked()).toBe(0)
})
