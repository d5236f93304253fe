import { expect, onTestFinished, test } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import { exportRequest, startRun } from '../../../scripts/runs/jobs.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { connectTemporal, createWorld } from './world.ts'

test('the same export that several commands start at once is one run, and another one is another', async () => {
  const client = await connectTemporal()
  const world = await createWorld()
  const settings = readSettings({ env: world.env, cwd: world.dataDir })
  const { workspace, baseUrl } = settings.billing
  const identity = { workspace, baseUrl, mode: 'live', store: 'none' } as const
  // Nobody listens there: what is started stays open.
  const start = (input: ExportInput) =>
    startRun({ settings, session: { client, identity }, request: exportRequest({ settings, input }) })
  const same = await Promise.all([
    start({ resources: ['plans', 'customers'], to: ['csv', 'duckdb'] }),
    start({ resources: ['plans', 'customers'], to: ['duckdb', 'csv'] }),
  ])
  const other = await start({ resources: ['plans', 'customers'], to: ['csv'] })
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
