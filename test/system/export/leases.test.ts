import type { Client } from '@temporalio/client'
import { expect, test } from 'vitest'
import { hasEnded } from '../../../activities/step.ts'
import { openState } from '../../../core/state/open.ts'
import type { exportData } from '../../../workflows/export-run.ts'
import {
  asked,
  connectTemporal,
  createWorld,
  resetToPlan,
  runExport,
  startRun,
  startTestWorker,
  until,
} from './world.ts'

test("a claim whose run Temporal does not know any more stands in nobody's way", async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  const state = await openState({ folder: world.dataDir })
  await state.leases.take({
    name: 'export plans to csv',
    owner: { workflowId: 'export-forgotten', runId: '11111111-1111-4111-8111-111111111111' },
    isClosed: () => Promise.resolve(false),
  })
  await state.close()
  await startTestWorker(world)
  const report = await runExport(world, { resources: ['plans'] })
  expect(report.verdict).toBe('proven')
})

test(
  'a run that was reset holds its claims again, so that no other does the same beside it',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({
      counts: { customers: 4000 },
      faults: [{ kind: 'latency', ms: 200 }],
    })
    await startTestWorker(world)
    const client = await connectTemporal()
    const run = await startRun({ client, world, input: { resources: ['customers'] } })
    await until(() => asked(world) > 8)
    await resetToPlan(client, run)
    const before = asked(world)
    await until(() => asked(world) > before + 8)
    const other = await startRun({ client, world, input: { resources: ['customers'] } })
    await expect(other.result()).rejects.toMatchObject({
      cause: {
        message: expect.stringContaining(
          `The run ${run.workflowId} is already doing this (export customers to csv) and has not ended. Wait for it, or stop it.`,
        ),
      },
    })
    world.sandbox.control.setFaults({ faults: [] })
    const report = await client.workflow.getHandle<typeof exportData>(run.workflowId).result()
    expect(report.verdict).toBe('proven')
  },
)

/** Temporal's number for the command (`COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION`). */
const continueAsNew = 10
type Answer = Parameters<Client['workflowService']['respondWorkflowTaskCompleted']>[0]

test('a run that went on as another has ended when that one has', { tags: ['long'] }, async () => {
  const client = await connectTemporal()
  const taskQueue = `by-hand-${process.pid}`
  const workflowId = `continued-${process.pid}`
  const { firstExecutionRunId: runId } = await client.workflow.start('byHand', { workflowId, taskQueue })
  const asker = { workflowId: 'another', runId: 'x' }
  const ended = () => hasEnded({ client, execution: { workflowId, runId }, asker })
  expect(await ended()).toBe(false)
  /** Answers as a worker would: the run continues as another execution. */
  const { taskToken } = await client.withDeadline(Date.now() + 20_000, () =>
    client.workflowService.pollWorkflowTaskQueue({
      namespace: 'default',
      taskQueue: { name: taskQueue },
      identity: 'by hand',
    }),
  )
  const answer: unknown = {
    taskToken,
    namespace: 'default',
    commands: [
      {
        commandType: continueAsNew,
        continueAsNewWorkflowExecutionCommandAttributes: {
          workflowType: { name: 'byHand' },
          taskQueue: { name: taskQueue },
        },
      },
    ],
  }
  await client.workflowService.respondWorkflowTaskCompleted(answer as Answer)
  const { status } = await client.workflow.getHandle(workflowId, runId).describe()
  expect(status.name).toBe('CONTINUED_AS_NEW')
  expect(await ended()).toBe(false)
  // To what it became it is over.
  expect(
    await hasEnded({ client, execution: { workflowId, runId }, asker: { workflowId, runId: 'y' } }),
  ).toBe(true)
  // A chain may outlast what Temporal keeps of its first execution.
  await client.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
  })
  const isKnown = async () => {
    try {
      await client.workflow.getHandle(workflowId, runId).describe()
      return true
    } catch {
      return false
    }
  }
  await until(async () => !(await isKnown()))
  expect(await ended()).toBe(false)
  await client.workflow.getHandle(workflowId).terminate()
  expect(await ended()).toBe(true)
  // Nor does a new run under the same id keep it open.
  await client.workflow.start('byHand', { workflowId, taskQueue })
  expect(await ended()).toBe(true)
  await client.workflow.getHandle(workflowId).terminate()
})
