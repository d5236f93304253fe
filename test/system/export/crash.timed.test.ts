import { once } from 'node:events'
import { expect, test } from 'vitest'
import { input, killGroup, pagesRead, quiet, says, startConnector } from './killed-process.ts'
import { connectTemporal, createWorld, startRun } from './world.ts'

test('an export resumes less than 7 s after a SIGKILL of the worker', { tags: ['long'] }, async () => {
  const world = await createWorld({ ...quiet, faults: [{ kind: 'latency', ms: 200 }] })
  const client = await connectTemporal()
  const worker = startConnector(world, ['worker'])
  await says(worker, 'listening')
  const run = await startRun({ client, world, input })
  await pagesRead(world, 12)
  killGroup(worker)
  await once(worker, 'exit')
  const killedAt = performance.now()
  const next = startConnector(world, ['worker'])
  await says(next, 'listening')
  await pagesRead(world, 1)
  expect(performance.now() - killedAt).toBeLessThan(7_000)
  world.sandbox.control.setFaults({ faults: [] })
  expect((await run.result()).verdict).toBe('proven')
})
