import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  connectTemporal,
  createWorld,
  folderOf,
  historyOf,
  rowsOf,
  startRun,
  startTestWorker,
} from './world.ts'

describe('an export', () => {
  test('keeps its history to tens of events, without a row or the token in it', async () => {
    const world = await createWorld({ counts: { customers: 500 } })
    await startTestWorker(world)
    const client = await connectTemporal()
    const handle = await startRun({ client, world, input: { resources: ['customers'] } })
    const report = await handle.result()
    const [{ id } = {}] = await rowsOf(report, 'customers')
    const history = await historyOf(handle)
    expect((await handle.fetchHistory()).events?.length).toBeLessThan(60)
    expect(history).toContain('customers')
    expect(history).not.toContain(world.sandbox.token)
    expect(history).not.toContain(id)
  })

  test('of test-mode data lies apart from live data', async () => {
    const world = await createWorld({ testCounts: { plans: 7 } })
    await startTestWorker(world, { BILLING_TEST_MODE: 'true' })
    const client = await connectTemporal()
    const handle = await client.workflow.start('exportData', {
      workflowId: `export-${world.workspace}-test`,
      taskQueue: `${world.taskQueue}-test`,
      args: [{ resources: ['plans'] }],
    })
    const report = await handle.result()
    expect(folderOf(report, 'plans')).toContain(join(world.dataDir, 'exports', 'test', 'plans'))
    expect(await rowsOf(report, 'plans')).toHaveLength(7)
  })
})
