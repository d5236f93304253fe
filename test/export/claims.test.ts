import { expect, test } from 'vitest'
import { openState } from '../../state/open-state.ts'
import type { exportData } from '../../workflows/export-data.ts'
import { asked, connectTemporal, createWorld, startRun, startTestWorker, until } from './world.ts'

test("a claim whose run Temporal does not know any more stands in nobody's way", async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  const state = await openState({ folder: world.dataDir })
  await state.claims.take({
    what: 'export plans to csv',
    owner: { workflowId: 'export-forgotten', runId: '11111111-1111-4111-8111-111111111111' },
    isClosed: () => Promise.resolve(false),
  })
  await state.close()
  await startTestWorker(world)
  const client = await connectTemporal()
  const report = await (await startRun({ client, world, input: { resources: ['plans'] } })).result()
  expect(report.verdict).toBe('proven')
})

test('a run that was reset holds its claims again, so that no other does the same beside it', async () => {
  const world = await createWorld({
    counts: { customers: 4000 },
    faults: [{ kind: 'latency', ms: 200 }],
  })
  await startTestWorker(world)
  const client = await connectTemporal()
  const run = await startRun({ client, world, input: { resources: ['customers'] } })
  await until(() => asked(world) > 8)
  const { events } = await run.fetchHistory()
  const planned = events?.findIndex((event) => event.activityTaskCompletedEventAttributes) ?? -1
  const next = events?.slice(planned).find((event) => event.workflowTaskCompletedEventAttributes)
  await client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: run.workflowId },
    workflowTaskFinishEventId: next?.eventId ?? null,
    requestId: run.workflowId,
  })
  const before = asked(world)
  await until(() => asked(world) > before + 8)
  const other = await startRun({ client, world, input: { resources: ['customers'] } })
  await expect(other.result()).rejects.toMatchObject({
    cause: { message: expect.stringContaining(`The run ${run.workflowId} is doing this already`) },
  })
  world.sandbox.control.setFaults({ faults: [] })
  const report = await client.workflow.getHandle<typeof exportData>(run.workflowId).result()
  expect(report.verdict).toBe('proven')
}, 60_000)
