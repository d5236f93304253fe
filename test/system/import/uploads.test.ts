import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { WorkflowClient } from '@temporalio/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, startTestWorker, until } from '../export/world.ts'
import { retentionsCsv } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }

test('an import whose start took effect although the command heard nothing of it finds the files of that command', async () => {
  const world = await createWorld({ counts })
  const client = await connectTemporal()
  await startTestWorker(world)
  const original = client.workflow.start.bind(client.workflow)
  const start = vi.spyOn(WorkflowClient.prototype, 'start')
  onTestFinished(() => start.mockRestore())
  start.mockImplementationOnce(async (type, options) => {
    start.mockRestore()
    // It begins after the command has ended.
    await original(type, { ...options, startDelay: '1s' })
    throw new Error('the reply was lost')
  })
  const file = join(world.dataDir, 'rows.csv')
  await writeFile(file, retentionsCsv(2))
  const failed = await callCommand(world, ['import', 'retentions', file, '--detach'])
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('the reply was lost') })
  const query = `TaskQueue = '${world.taskQueue}'`
  const runs = () => Array.fromAsync(client.workflow.list({ query }))
  await until(async () => (await runs()).length === 1)
  const [{ workflowId } = { workflowId: '' }] = await runs()
  expect(await client.workflow.getHandle(workflowId).result()).toMatchObject({ verdict: 'proven' })
})
