import { describe, expect, test } from 'vitest'
import { verdictOf } from '../../../core/changes/verdict.ts'
import { isReportedOnly } from '../../../core/recoveries/refusal.ts'
import { triedReasons } from '../../../core/recoveries/reasons.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'

const plan = { reasons: [...triedReasons], attempts: 3 }

const row = (fields: Partial<LedgerRow>) =>
  ({
    state: 'parked',
    outcome: 'needsPerson',
    sends: 0,
    attemptsBefore: 0,
    breakerKey: 'without_reference',
    ...fields,
  }) as LedgerRow

const tried = { breakerKey: 'gateway_issue' }

describe('a subscription that a recovery never set out to resume is only reported', () => {
  test.each<[string, Partial<LedgerRow>]>([
    ['its reason needs a person', {}],
    ['it has no known reason', { breakerKey: '' }],
    ['earlier runs used up its attempts', { ...tried, outcome: 'attemptsUsedUp', attemptsBefore: 3 }],
  ])('because %s', (_, fields) => expect(isReportedOnly(row(fields), plan)).toBe(true))
})

describe('a subscription that a recovery set out to resume counts for its verdict', () => {
  test.each<[string, Partial<LedgerRow>]>([
    ['its reason became one that needs a person', { ...tried }],
    ['it was not found', { ...tried, outcome: 'notFound' }],
    ['it fell back after every attempt of this run', { ...tried, outcome: 'attemptsUsedUp', sends: 3 }],
    ['its last attempt was refunded', { ...tried, outcome: 'attemptsUsedUp', attemptsBefore: 2 }],
    ['a person dropped it', { ...tried, state: 'dropped', outcome: 'dropped' }],
    ['a person asked to resume it', { state: 'staged', outcome: null }],
    ['a person asked to resume it, and it fell back', { sends: 1, outcome: 'fellBack' }],
    ['a person said that it is done', { state: 'done', outcome: 'resolved' }],
    ['it was never tried', { ...tried, state: 'dropped', outcome: 'notTried' }],
  ])('though %s', (_, fields) => expect(isReportedOnly(row(fields), plan)).toBe(false))
})

test('a reported subscription never hides one that was to be resumed and was not', () => {
  const counts = { staged: 0, done: 5, rejected: 0, unknown: 0, parked: 3, skipped: 1, notTried: 0 }
  const summary = { counts, outcomes: { recovered: 5, needsPerson: 3 }, doneWithoutId: 0, doneResolved: 0 }
  const verdict = (reported: number) =>
    verdictOf({
      kind: 'resume-subscription',
      summary: { ...summary, counts: { ...counts, parked: counts.parked - reported } },
      listProven: true,
    })
  expect(verdict(3)).toMatchObject({ verdict: 'proven', reasons: [] })
  expect(verdict(2)).toMatchObject({ verdict: 'unproven' })
})
