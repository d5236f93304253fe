import { expect, test } from 'vitest'
import { afterTrial, isBad } from '../../../core/changes/send/breaker.ts'
import type { ChangeEvent } from '../../../core/state/schema.ts'

/** Events in the order in which they came: s succeeded, f failed, x was answered by something else. */
const isBadAfter = (events: string, share = 0.5) => {
  const names: Record<string, ChangeEvent> = { s: 'success', f: 'failure', x: 'fault' }
  return isBad(Array.from(events, (event) => names[event] ?? 'fault').toReversed(), share)
}

test('a breaker opens after ten outcomes, if more of them failed than the share allows', () => {
  expect(isBadAfter('f'.repeat(9))).toBe(false)
  expect(isBadAfter('f'.repeat(10))).toBe(true)
  expect(isBadAfter('sf'.repeat(10))).toBe(false)
  expect(isBadAfter(`${'sf'.repeat(10)}f`)).toBe(true)
})

test('a breaker counts the last twenty outcomes only', () => {
  expect(isBadAfter(`${'s'.repeat(30)}${'f'.repeat(10)}`)).toBe(false)
  expect(isBadAfter(`${'s'.repeat(30)}${'f'.repeat(11)}`)).toBe(true)
})

test('a breaker opens on ten faults in a row, and an answer between them resets the count', () => {
  expect(isBadAfter('xxxxxxxxxsxxxxxxxxx')).toBe(false)
  expect(isBadAfter('xxxxxxxxxsxxxxxxxxxx')).toBe(true)
})

test('a trial that succeeds closes a breaker, one that fails delays the next, and one without a result changes nothing', () => {
  const open = { clearedAt: 1, openedAt: 10, trials: 1 }
  expect(afterTrial(open, { at: 20, event: 'success' })).toEqual({ clearedAt: 20, trials: 0 })
  for (const event of ['failure', 'fault'] as const)
    expect(afterTrial(open, { at: 20, event })).toEqual({ clearedAt: 1, openedAt: 20, trials: 2 })
  for (const trial of ['pending', undefined] as const) expect(afterTrial(open, trial)).toEqual(open)
})
