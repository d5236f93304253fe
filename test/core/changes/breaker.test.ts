import { expect, test } from 'vitest'
import { Breaker, type BreakerEvent } from '../../../core/changes/send/breaker.ts'

const minute = 60_000
const start = (share = 0.5) => new Breaker({ maxFailureShare: () => share })
const feed = (breaker: Breaker, events: string, at = 0) => {
  const names: Record<string, BreakerEvent> = {
    s: 'success',
    f: 'failure',
    x: 'fault',
    p: 'pending',
    n: 'notSent',
  }
  for (const event of events) breaker.record({ event: names[event] ?? 'notSent', at })
}

test('needs ten outcomes, and more failures than the share', () => {
  const breaker = start()
  feed(breaker, 'fffffffff')
  expect(breaker.isOpen).toBe(false)
  feed(breaker, 'f')
  expect(breaker.isOpen).toBe(true)
  const half = start()
  feed(half, 'sfsfsfsfsfsfsfsfsfsf')
  expect(half.isOpen).toBe(false)
  feed(half, 'f')
  expect(half.isOpen).toBe(true)
})

test('forgets all but the last twenty outcomes', () => {
  const breaker = start()
  feed(breaker, 'ssssssssssssssssssssssssssssss')
  feed(breaker, 'ffffffffff')
  expect(breaker.isOpen).toBe(false)
  feed(breaker, 'f')
  expect(breaker.isOpen).toBe(true)
})

test('429, lost replies and what was never sent are no failures', () => {
  const breaker = start()
  feed(breaker, 'npnpnpnpnpnpnpnpnpnpnpnpnpnp')
  expect(breaker.isOpen).toBe(false)
})

test('opens on ten server errors in a row; an answer between them resets the count', () => {
  const breaker = start()
  feed(breaker, 'xxxxxxxxxs')
  feed(breaker, 'xxxxxxxxx')
  expect(breaker.isOpen).toBe(false)
  feed(breaker, 'x')
  expect(breaker.isOpen).toBe(true)
})

test('lets one through after 1, 2 and 4 minutes, then gives up', () => {
  const breaker = start()
  feed(breaker, 'ffffffffff')
  let at = 0
  for (const wait of [1, 2, 4]) {
    expect(breaker.nextTrialAt).toBe(at + wait * minute)
    expect(breaker.admits(at + wait * minute - 1)).toBe(false)
    at += wait * minute
    expect(breaker.admits(at)).toBe(true)
    breaker.start()
    expect(breaker.admits(at)).toBe(false)
    feed(breaker, 'f', at)
  }
  expect(breaker.hasGivenUp).toBe(true)
  expect(breaker.admits(at + 1_000 * minute)).toBe(false)
})

test('closes when a trial succeeds, and does not count what failed before', () => {
  const breaker = start()
  feed(breaker, 'ffffffffff')
  breaker.start()
  feed(breaker, 's', minute)
  expect(breaker.isOpen).toBe(false)
  feed(breaker, 'fffffffff', minute)
  expect(breaker.isOpen).toBe(false)
})

test('a trial whose reply was lost stays pending until it is settled; one that never left is no trial', () => {
  const breaker = start()
  feed(breaker, 'ffffffffff')
  breaker.start()
  feed(breaker, 'p', minute)
  expect(breaker.admits(100 * minute)).toBe(false)
  feed(breaker, 's', minute)
  expect(breaker.isOpen).toBe(false)
  const other = start()
  feed(other, 'ffffffffff')
  other.start()
  feed(other, 'n', minute)
  expect(other.admits(minute)).toBe(true)
})

test('what was on its way when it opened is no trial', () => {
  const breaker = start()
  feed(breaker, 'ffffffffff')
  feed(breaker, 's', 5)
  expect(breaker.isOpen).toBe(true)
  expect(breaker.nextTrialAt).toBe(5 + minute)
})
