import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test, vi } from 'vitest'
import { awaitWorker, findWorker, temporalPlace } from '../../../scripts/session/temporal.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { connectTemporal, createWorld, openTestWorker, startTestWorker } from '../export/world.ts'

/** A service, and what a command that looks for its worker has. */
async function open() {
  const world = await createWorld({ counts: { plans: 1 } })
  const client = await connectTemporal()
  const settings = readSettings({ env: world.env, cwd: world.dataDir })
  const asked = { client, settings, place: temporalPlace(settings), terminal: { note: () => undefined } }
  return { world, asked }
}

test('a command that is given before a worker’s first poll waits for that worker', async () => {
  const { world, asked } = await open()
  // Looks once.
  await expect(awaitWorker({ ...asked, withinMs: 1 })).rejects.toMatchObject({
    message: `No worker listens on the task queue ${world.taskQueue}.`,
    hint: 'Start one with `npx connector up` or `npx connector worker`, or start jobs with --local.',
  })
  // As long as a busy machine may take.
  const found = awaitWorker({ ...asked, withinMs: 60_000 })
  await startTestWorker(world)
  expect(await found).toMatchObject({ identity: { workspace: world.workspace } })
})

test('a command that is given before the first poll of a worker with another key waits for it, not for the one before', async () => {
  const { world, asked } = await open()
  const key = randomBytes(32).toString('base64')
  const before = await openTestWorker(world, { CONNECTOR_PAYLOAD_KEY: key })
  await expect(awaitWorker({ ...asked, withinMs: 1_000 })).rejects.toThrow('and this command with no key')
  await before.stop()
  const found = awaitWorker({ ...asked, withinMs: 60_000 })
  await startTestWorker(world)
  expect(await found).toMatchObject({ keyIds: [] })
})

test('a worker that has not polled for longer than a poll takes is none, although Temporal still lists it', async () => {
  const { world, asked } = await open()
  const worker = await openTestWorker(world)
  await awaitWorker({ ...asked, withinMs: 60_000 })
  await worker.stop()
  expect(await findWorker(asked)).toMatchObject({ identity: { workspace: world.workspace } })
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 91_000 })
  onTestFinished(() => void vi.useRealTimers())
  expect(await findWorker(asked)).toBeUndefined()
})
