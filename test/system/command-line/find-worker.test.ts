import { expect, test } from 'vitest'
import { awaitWorker } from '../../../scripts/session/find-worker.ts'
import { temporalPlace } from '../../../scripts/session/temporal-place.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { connectTemporal, createWorld, startTestWorker } from '../export/world.ts'

test('a command that is given before a worker’s first poll waits for that worker', async () => {
  const world = await createWorld({ counts: { plans: 1 } })
  const client = await connectTemporal()
  const settings = readSettings({ env: world.env, cwd: world.dataDir })
  const asked = { client, settings, place: temporalPlace(settings), hasLocal: false }
  // Looks once.
  await expect(awaitWorker({ ...asked, withinMs: 1 })).rejects.toThrow('No worker listens')
  // As long as a busy machine may take.
  const found = awaitWorker({ ...asked, withinMs: 60_000 })
  await startTestWorker(world)
  expect(await found).toMatchObject({ identity: { workspace: world.workspace } })
})
