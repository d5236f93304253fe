import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { recordFailure } from '../../../activities/schedules/pause-if-failing.ts'

test('failed runs are noted in the data folder, schedule by schedule, the last 20 of each', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'failures-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const note = (schedule: string, firstExecutionRunId: string) =>
    recordFailure({ dataDir, run: { schedule, firstExecutionRunId, scheduledFor: '2026-11-21', why: 'no' } })
  expect(await note('nightly', 'first')).toEqual(new Set(['first']))
  expect(await note('nightly', 'second')).toEqual(new Set(['first', 'second']))
  expect(await note('nightly', 'second')).toEqual(new Set(['first', 'second']))
  expect(await note('hourly', 'other')).toEqual(new Set(['other']))
  for (let run = 0; run < 19; run++) await note('nightly', `run ${run}`)
  const noted = await note('nightly', 'run 0')
  expect(noted.size).toBe(20)
  expect([...noted]).toContain('second')
  expect([...noted]).not.toContain('first')
  // A note that a full disk cut short is started over: the run still fails with its own message.
  await writeFile(join(dataDir, 'schedules', 'nightly.failed.json'), '[{"first')
  expect(await note('nightly', 'last')).toEqual(new Set(['last']))
})
