import { expect, test } from 'vitest'
import { toPreview } from '../../../core/recoveries/select.ts'

const dates = ['2026-11-24', '2026-11-25', '2026-11-26']
const value = { amounts: {} }

/** What the preview counts, at `now`, of subscriptions that the service says need attention since `since`. */
function previewAt(now: string, since: string | undefined, nextBillings = dates) {
  const rows = nextBillings.map((next_billing) => ({
    body: {
      collection_scheme: 'charge_payment',
      snapshot: { reason: 'gateway_issue', next_billing, since, value },
    },
  }))
  const { past, today, future } = toPreview(rows as never, Date.parse(now)).byNextBilling
  return [past, today, future]
}

test.each([
  ['behind UTC, before its midnight', '2026-11-25T20:00:00-03:00', '2026-11-20T08:00:00-03:00', [1, 1, 1]],
  ['behind UTC, after UTC’s midnight', '2026-11-25T21:30:00-03:00', '2026-11-20T08:00:00-03:00', [1, 1, 1]],
  ['ahead of UTC, after its midnight', '2026-11-26T08:30:00+13:00', '2026-11-20T08:00:00+13:00', [2, 1, 0]],
  ['with half an hour', '2026-11-26T00:10:00+05:30', '2026-11-20T08:00:00.123456+05:30', [2, 1, 0]],
  ['of UTC', '2026-11-26T00:10:00Z', '2026-11-20T08:00:00Z', [2, 1, 0]],
  ['that no time shows', '2026-11-25T21:30:00-03:00', undefined, [1, 1, 1]],
])('today is the day of a workspace %s', (_, now, since, counts) => {
  expect(previewAt(now, since)).toEqual(counts)
})

test('a day on which the clocks changed is today by the latest time of the service', () => {
  // Chile went from -04:00 to -03:00 on 6 September 2026.
  const rows = ['2026-09-05T12:00:00-04:00', '2026-09-06T01:00:00-03:00'].map((since) => ({
    body: { collection_scheme: '', snapshot: { reason: '', next_billing: '2026-09-06', since, value } },
  }))
  const at = (now: string) => toPreview(rows as never, Date.parse(now)).byNextBilling.today
  expect(at('2026-09-07T03:30:00Z')).toBe(0)
  expect(at('2026-09-07T02:30:00Z')).toBe(2)
})

test('a next_billing with a time is the date that the service wrote', () => {
  const written = ['2026-11-25T00:00:00-03:00', '2026-11-25T23:59:59-03:00']
  expect(previewAt('2026-11-25T21:30:00-03:00', '2026-11-20T08:00:00-03:00', written)).toEqual([0, 2, 0])
})
