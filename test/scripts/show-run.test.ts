import { defaultPayloadConverter } from '@temporalio/common'
import { expect, test } from 'vitest'
import { formatLocalTime } from '../../core/runs/view/format.ts'
import { observeChanges, withHeartbeats } from '../../scripts/runs/show-run.ts'
import type { ExportProgress } from '../../workflows/export-view.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'

/** The bar of a recovery with this progress. */
async function barOf(progress: Partial<WriteProgress>) {
  const handle = {
    describe: async () => ({ raw: {} }),
    query: async () => progress,
  } as unknown as Parameters<typeof observeChanges<WriteProgress>>[0]['handle']
  const observe = observeChanges({
    handle,
    unit: 'subscriptions',
    nameOf: () => 'recovery',
    onQuestion: async () => {},
  })
  const { bars } = await observe()
  return bars[0]
}

const counts = { done: 0, staged: 0, unknown: 0, parked: 0, rejected: 0, skipped: 0, notTried: 0 }

test('a bar counts what was sent apart from what needs a person and never was', async () => {
  const sending = { phase: 'sending', counts: { ...counts, staged: 1, unknown: 1, parked: 1 } } as const
  expect(await barOf(sending)).toMatchObject({
    done: 1,
    total: 3,
    note: '0 of 1 sent are checked, 1 parked',
  })
})

test('a bar says what it waits for once everything is sent, and until when', async () => {
  const waiting = { counts: { ...counts, done: 28, unknown: 2 }, nextAt: '2026-11-21T02:00:07Z' }
  expect(await barOf(waiting)).toMatchObject({
    done: 28,
    total: 30,
    note: `28 of 30 sent are checked, the others once the service has settled (BILLING_SETTLE_SECONDS), next at ${formatLocalTime(waiting.nextAt)}`,
  })
})

test.each(['looking up', 'canary'] as const)(
  'a bar says what it waits for while others are not sent (%s)',
  async (phase) => {
    expect(await barOf({ phase, counts: { ...counts, staged: 3, unknown: 2 } })).toMatchObject({
      note: '0 of 2 sent are checked, the others once the service has settled (BILLING_SETTLE_SECONDS)',
    })
  },
)

/** A run whose steps under way have told Temporal this. */
const beating = (...beats: object[]) =>
  ({
    raw: {
      pendingActivities: beats.map((beat) => ({
        heartbeatDetails: { payloads: [defaultPayloadConverter.toPayload(beat)] },
      })),
    },
  }) as Parameters<typeof withHeartbeats>[1]

test('the progress of a run has what its steps under way have done, which its workflow does not see', () => {
  const sending = { phase: 'sending', counts: { ...counts, staged: 30 } } as WriteProgress
  expect(withHeartbeats(sending, beating({ ...counts, done: 12, staged: 18, claims: 12 })).counts).toEqual({
    ...counts,
    done: 12,
    staged: 18,
  })
  const [known] = [{ resource: 'plans', state: 'reading', records: 100, requests: 2 }]
  const reading = { resources: [known, { resource: 'customers', state: 'proven' }] } as ExportProgress
  const { resources } = withHeartbeats(reading, beating({ resource: 'plans', records: 160, requests: 3 }))
  expect(resources).toEqual([{ ...known, records: 160, requests: 3 }, reading.resources[1]])
})
