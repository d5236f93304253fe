import type { Client } from '@temporalio/client'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createPauseIfFailing } from '../../activities/schedules/pause-if-failing.ts'
import type { StepContext } from '../../activities/step.ts'

test.each([
  [false, 'Paused after 1 failed runs in a row; the last: filter email=rosa@araya.cl is wrong'],
  [true, 'Paused after 1 failed runs in a row'],
])(
  'the note that Temporal keeps of a paused schedule has no reason if payloads are encrypted (%s)',
  async (encrypts, note) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'pause-note-'))
    onTestFinished(() => rm(dataDir, { recursive: true }))
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
    const pauseIfFailing = createPauseIfFailing({ dataDir, encrypts })
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
