import type { Client } from '@temporalio/client'
import { expect, onTestFinished, test } from 'vitest'
import { createPauseIfFailing } from '../../activities/schedules/pause-if-failing.ts'
import type { StepContext } from '../../activities/step.ts'
import { openState } from '../../core/state/open.ts'
import { temporaryFolder } from '../core/state/temporary-folder.ts'

test.each([
  [false, 'Paused after 1 failed runs in a row; the last: filter email=rosa@araya.cl is wrong'],
  [true, 'Paused after 1 failed runs in a row'],
])(
  'the note that Temporal keeps of a paused schedule has no reason if payloads are encrypted (%s)',
  async (encrypts, note) => {
    const state = await openState({ folder: await temporaryFolder() })
    onTestFinished(() => state.close())
    const notes: (string | undefined)[] = []
    const handle = {
      describe: async () => ({
        action: { memo: { schedule: { pauseAfterFailures: 1 } } },
        info: { recentActions: [] },
        state: { paused: false },
      }),
      pause: async (given?: string) => void notes.push(given),
    }
    const client = { schedule: { getHandle: () => handle } } as unknown as Client
    const pauseIfFailing = createPauseIfFailing({ state, encrypts })
    const told = await pauseIfFailing({ client } as StepContext, {
      schedule: 'nightly',
      scheduledFor: '2026-11-22T02:00:00Z',
      firstExecutionRunId: 'r',
      why: 'filter email=rosa@araya.cl is wrong',
    })
    expect(notes).toEqual([note])
    // The notification, which does not stay in Temporal in the clear, says why.
    expect(told).toContain('rosa@araya.cl')
  },
)
