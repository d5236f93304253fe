import { expect, onTestFinished, test, vi } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import { startExport } from '../../../scripts/runs/run-export.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { connectTemporal } from './world.ts'

test('the same export that several commands start at once, seconds apart or not, is one run, and another one is another', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
  onTestFinished(() => void vi.useRealTimers())
  const client = await connectTemporal()
  // Temporal's list shows nothing of them yet.
  const list = client.workflow.list.bind(client.workflow)
  vi.spyOn(client.workflow, 'list').mockImplementation(() => list({ query: "WorkflowType = 'none'" }))
  onTestFinished(() => void vi.restoreAllMocks())
  // Nobody listens there: what is started stays open.
  const place = { client, taskQueue: `start-export-${process.pid}`, dataDir: await temporaryFolder() }
  const start = (input: ExportInput) => startExport({ ...place, input })
  const same = await Promise.all([
    start({ resources: ['plans', 'customers'], to: ['csv', 'duckdb'] }),
    start({ resources: ['plans', 'customers'], to: ['duckdb', 'csv'] }),
  ])
  const other = await start({ resources: ['plans', 'customers'], to: ['csv'] })
  vi.setSystemTime(Date.now() + 2_000)
  same.push(await start({ to: ['csv', 'duckdb'], resources: ['customers', 'plans'] }))
  const ids = new Set([...same, other].map(({ handle }) => handle.workflowId))
  onTestFinished(async () => {
    for (const id of ids) await client.workflow.getHandle(id).terminate()
  })
  expect(same.filter(({ attached }) => !attached)).toHaveLength(1)
  expect(new Set(same.map(({ handle }) => handle.workflowId)).size).toBe(1)
  expect(other.attached).toBe(false)
  expect(ids.size).toBe(2)
})
