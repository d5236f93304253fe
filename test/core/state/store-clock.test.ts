import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startClock } from '../../../core/state/store-clock.ts'

/** A machine and a server whose clocks the test sets. */
async function startClocks({ askingMs = () => 0 }: { askingMs?: (measured: number) => number } = {}) {
  const at = { monotonic: 1_000, wall: 500_000, server: 700_000 }
  const jumps: number[] = []
  const pass = (ms: number) => {
    at.monotonic += ms
    at.wall += ms
    at.server += ms
  }
  let measured = 0
  const clock = await startClock({
    ask: async () => {
      // It waits for a connection; its answer comes at once.
      pass(askingMs(measured++))
      return at.server
    },
    onJump: (ms) => jumps.push(ms),
    monotonic: () => at.monotonic,
    wall: () => at.wall,
  })
  return { at, clock, jumps, pass }
}

test('times go by the clock of the server, between two measurements by the monotonic clock', async () => {
  const { at, clock, pass } = await startClocks()
  pass(5_000)
  at.wall += 60_000
  expect(clock.now()).toBe(705_000)
})

test('a jump of the server is followed by a second for each measurement, so that no wait is cut short', async () => {
  const { at, clock, jumps, pass } = await startClocks()
  pass(10_000)
  at.server += 60_000
  await clock.measure()
  expect(clock.now()).toBe(711_000)
  pass(10_000)
  at.server -= 60_000 - 1_000
  await clock.measure()
  expect(clock.now()).toBe(721_000)
  expect(jumps).toEqual([60_000])
})

test('after the machine was suspended, the time of the server is believed at once', async () => {
  const { at, clock, jumps } = await startClocks()
  at.wall += 3_600_000
  at.server += 3_600_000
  await clock.measure()
  expect(clock.now()).toBe(4_300_000)
  expect(jumps).toEqual([])
})

test.each([
  ['slowly where it was set', { wall: 60_000, elapsed: 0 }, 501_000],
  ['at once after a suspension', { wall: 60_000, elapsed: 60_000 }, 560_000],
])('the clock of this machine is followed %s', async (_, by, now) => {
  const at = { wall: 500_000, elapsed: 0 }
  const clock = await startClock({
    ask: async () => at.wall,
    monotonic: () => 0,
    wall: () => at.wall,
    elapsed: () => at.elapsed,
  })
  at.wall += by.wall
  at.elapsed += by.elapsed
  await clock.measure()
  expect(clock.now()).toBe(now)
})

test('the time is that of halfway through the round trip', async () => {
  const times = [1_000, 1_200]
  const clock = await startClock({
    ask: async () => 50_000,
    monotonic: () => times.shift() ?? 1_200,
    wall: () => 0,
  })
  expect(clock.now()).toBe(50_100)
})

test('a measurement that waited long for its answer changes nothing', async () => {
  const { at, clock, jumps, pass } = await startClocks({
    askingMs: (measured) => (measured === 0 ? 0 : 30_000),
  })
  pass(10_000)
  await clock.measure()
  expect(clock.now()).toBe(at.server)
  expect(jumps).toEqual([])
})

test('after the machine was suspended, the first question asks the server at once', async () => {
  const { at, clock } = await startClocks()
  at.wall += 3_600_000
  at.server += 3_600_000
  expect(clock.now()).toBe(700_000)
  await setImmediate()
  expect(clock.now()).toBe(4_300_000)
})
