import { expect, onTestFinished, test, vi } from 'vitest'
import type { ExportInput } from '../../activities/open-export.ts'
import { startExport } from '../../scripts/start-export.ts'
import { connectTemporal } from './world.ts'

test('the same export that is asked for several times in one second is one run, and another one is another', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
  onTestFinished(() => void vi.useRealTimers())
  const client = await connectTemporal()
  // Nobody listens there: what is started stays open.
  const place = { client, taskQueue: `start-export-${process.pid}` }
  const start = (input: ExportInput) => startExport({ ...place, input })
  const same = await Promise.all([
    start({ resources: ['plans', 'customers'], to: ['csv', 'duckdb'] }),
    start({ resources: ['plans', 'customers'], to: ['duckdb', 'csv'] }),
    start({ to: ['csv', 'duckdb'], resources: ['customers', 'plans'] }),
  ])
  const other = await start({ resources: ['plans', 'customers'], to: ['csv'] })
  const ids = new Set([...same, other].map(({ handle }) => handle.workflowId))
  onTestFinished(async () => {
    for (const id of ids) await client.workflow.getHandle(id).terminate()
  })
  expect(same.filter(({ attached }) => !attached)).toHaveLength(1)
  expect(new Set(same.map(({ handle }) => handle.workflowId)).size).toBe(1)
  expect(other.attached).toBe(false)
  expect(ids.size).toBe(2)
})
