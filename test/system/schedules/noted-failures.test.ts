import { expect, onTestFinished, test } from 'vitest'
import { recordFailure } from '../../../activities/schedules/pause-if-failing.ts'
import { openState } from '../../../core/state/open.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { startPostgres } from '../destinations/postgres-server.ts'

const failure = (firstExecutionRunId: string, schedule = 'nightly') => ({
  schedule,
  firstExecutionRunId,
  scheduledFor: '2026-11-21',
})

test('failed runs are recorded schedule by schedule, the last 20 of each', async () => {
  const state = await openState({ folder: await temporaryFolder() })
  onTestFinished(() => state.close())
  const { notes } = state
  expect(await recordFailure({ notes, run: failure('first') })).toEqual(new Set(['first']))
  expect(await recordFailure({ notes, run: failure('second') })).toEqual(new Set(['first', 'second']))
  expect(await recordFailure({ notes, run: failure('second') })).toEqual(new Set(['first', 'second']))
  expect(await recordFailure({ notes, run: failure('other', 'hourly') })).toEqual(new Set(['other']))
  for (let run = 0; run < 19; run++) await recordFailure({ notes, run: failure(`run ${run}`) })
  const recorded = await recordFailure({ notes, run: failure('run 0') })
  expect(recorded.size).toBe(20)
  expect(recorded).not.toContain('first')
})

test('a failure that one worker of a fleet has recorded counts for another one, which has another disk', async () => {
  const postgres = await startPostgres()
  onTestFinished(() => postgres.close())
  const database = { url: await postgres.createDatabase(), schema: 'connector_acc' }
  const openWorker = async () => {
    const state = await openState({ folder: await temporaryFolder(), database })
    onTestFinished(() => state.close())
    return state
  }
  const [one, other] = [await openWorker(), await openWorker()]
  await recordFailure({ notes: one.notes, run: failure('first') })
  expect(await recordFailure({ notes: other.notes, run: failure('second') })).toEqual(
    new Set(['first', 'second']),
  )
  const runs = Array.from({ length: 16 }, (_, index) => failure(`run ${index}`))
  await Promise.all(runs.map((run, index) => recordFailure({ notes: (index % 2 ? one : other).notes, run })))
  expect(await one.notes.of('schedule nightly')).toHaveLength(18)
})
