import { expect, test } from 'vitest'
import type { Candidate } from '../../../core/recoveries/candidates.ts'
import { type RecoveryPlan, waitsOf } from '../../../core/recoveries/input.ts'
import { triedReasons } from '../../../core/recoveries/reasons.ts'
import { selectCandidates } from '../../../core/recoveries/select.ts'
import type { KeyHistory } from '../../../core/state/ledger/queries.ts'

const hourMs = 3_600_000
const now = Date.parse('2026-12-10T06:00:00Z')
const at = (hours: number) => new Date(now + hours * hourMs).toISOString()

const plan = {
  startedAt: at(0),
  reasons: [...triedReasons],
  named: false,
  attempts: 3,
  coolDown: 3_600,
  limits: {},
} as unknown as RecoveryPlan

/** What becomes of one subscription that fell at `since`, in hours from now, and has such a past. */
function becomes(since: number, past: Partial<KeyHistory>) {
  const candidate: Candidate = {
    id: 'sub_1',
    customer: 'cus_1',
    collection_scheme: 'charge_payment',
    snapshot: { reason: 'gateway_issue', since: at(since), next_billing: '', value: { amounts: {} } },
  }
  const history = { attempts: 0, lastSentAt: null, run: 'nightly', answer: null, ...past }
  const rows = selectCandidates({
    plan,
    candidates: [candidate],
    history: new Map([['sub_1', history]]),
  })
  const [change] = rows
  return {
    attempts: change?.attemptsBefore ?? 0,
    outcome: change?.closed?.outcome,
    words: change?.closed?.error,
  }
}

const seen = (hours: number) => JSON.stringify({ status: 'needs_attention', needs_attention: at(hours) })
const lasted = JSON.stringify({ status: 'active', needs_attention: null })

test.each<[string, number, Partial<KeyHistory>, number]>([
  ['the last look saw it fall', -20, { lastSentAt: now - 21 * hourMs, answer: seen(-20) }, 2],
  ['it fell again some hours after that look', -12, { lastSentAt: now - 21 * hourMs, answer: seen(-20) }, 2],
  [
    'it lasted to the look, and fell some hours later',
    -12,
    { lastSentAt: now - 24 * hourMs, answer: lasted },
    2,
  ],
  ['the service wrote no new time', -90, { lastSentAt: now - 24 * hourMs, answer: lasted }, 2],
  [
    'it is as the last look saw it, weeks ago',
    -500,
    { lastSentAt: now - 501 * hourMs, answer: seen(-500) },
    2,
  ],
  [
    'it fell back more than a day after its resume',
    -2,
    { lastSentAt: now - 27 * hourMs, answer: seen(-26) },
    0,
  ],
  ['it lasted for longer than a day', -2, { lastSentAt: now - 27 * hourMs, answer: lasted }, 0],
])('attempts count on while it is the same trouble: %s', (_, since, past, attempts) => {
  expect(becomes(since, { attempts: 2, ...past })).toEqual({ attempts, outcome: undefined, words: undefined })
})

test('a service that charges slowly is not tried endlessly: a subscription that falls back after each lookup uses up its attempts', () => {
  const past = { attempts: 3, lastSentAt: now - 24 * hourMs, answer: lasted }
  expect(becomes(-22, past)).toMatchObject({
    outcome: 'attemptsUsedUp',
    words: expect.stringMatching(/^resumed 3 times without lasting effect.* 24 hours .*attempts above 3$/),
  })
  expect(becomes(1, past).outcome).toBeUndefined()
})

test('a subscription that was resumed within the cool-down is left alone, and says until when', () => {
  const past = { attempts: 1, lastSentAt: now - hourMs / 2, answer: lasted }
  expect(becomes(-0.1, past)).toMatchObject({
    outcome: 'coolingDown',
    words:
      'resumed at 2026-12-10T05:30:00.000Z by nightly; tried again from 2026-12-10T06:30:00.000Z, or now with a shorter coolDown',
  })
  expect(becomes(-0.1, { ...past, lastSentAt: now - hourMs }).outcome).toBeUndefined()
})

test('the waits between the attempts double, up to the longest', () => {
  expect(waitsOf({ ...plan, attempts: 4, firstWait: 60, longestWait: 200 })).toEqual([
    60_000, 120_000, 200_000, 200_000,
  ])
})
