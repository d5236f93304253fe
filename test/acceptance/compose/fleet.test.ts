import { readFile } from 'node:fs/promises'
import { parseEnv } from 'node:util'
import type { Client } from '@temporalio/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { exportData } from '../../../workflows/export-run.ts'
import type { importFile } from '../../../workflows/import-file.ts'
import { until } from '../../system/export/world.ts'
import { retentionsCsv } from '../../system/import/world.ts'
import { openStack, type Stack } from './stack.ts'

const workers = ['worker', 'worker-2'] as const
const rows = 60
let stack: Stack
let client: Client

beforeAll(async () => {
  const file = new URL('../../../docs/deployment/fleet/fleet.env', import.meta.url)
  stack = await openStack({
    sandbox: {
      counts: { customers: 2_000, subscriptions: 0, plans: 5, retentions: 0, addons: 0, orders: 0 },
    },
    profiles: ['fleet'],
    env: parseEnv(await readFile(file, 'utf8')) as Record<string, string>,
  })
  await stack.compose('up', '--detach', '--no-build')
  await until(async () => (await Promise.all(workers.map(isHealthy))).every(Boolean))
  client = await stack.connect()
}, 240_000)
afterAll(async () => {
  await client?.connection.close()
  await stack?.close()
}, 120_000)

async function isHealthy(service: string): Promise<boolean> {
  return (await stack.containers()).some(({ Service, Health }) => Service === service && Health === 'healthy')
}

test('`check` finds nothing wrong with two workers on one state and one bucket', async () => {
  const { code, stdout, stderr } = await stack.connector('check')
  expect({ code, stderr }).toMatchObject({ code: 0 })
  expect(stdout).toContain('A worker for acc_demo listens')
  expect(stdout).not.toContain('WRONG')
})

test.each(workers)(
  '%s is killed during an export and an import: the other worker ends both, proven, each row sent once',
  async (victim) => {
    const before = await landed()
    const from = before.length + 1
    const slow = (on: string, ms: number) => ({ kind: 'latency', on, ms })
    const faults = [slow('GET /customers/', 1_500), slow('POST /retentions/', 1_000)]
    await stack.control('setFaults', { faults })
    await stack.put(`data/${victim}.csv`, retentionsCsv(rows, { mark: victim, from }))
    const exporting = await client.workflow.start<typeof exportData>('exportData', {
      workflowId: `export-${victim}`,
      taskQueue: stack.taskQueue,
      args: [{ resources: ['customers'] }],
    })
    const started = await stack.connector('import', 'retentions', `${victim}.csv`, '--detach', '--json')
    expect(started, started.stderr).toMatchObject({ code: 0 })
    const { run } = JSON.parse(started.stdout) as { run: string }
    const importing = client.workflow.getHandle<typeof importFile>(run)
    await until(async () => (await landed()).length > before.length + 4)
    await stack.compose('kill', victim)
    await stack.control('setFaults', { faults: [] })
    expect(await importing.result()).toMatchObject({ verdict: 'proven', counts: { done: rows } })
    expect(await exporting.result()).toMatchObject({ verdict: 'proven' })
    expect(await landed()).toEqual(Array.from({ length: from - 1 + rows }, (_, index) => index + 1))
    // A command in a container of its own fetches the report from the bucket.
    const shown = await stack.connector('run', 'report', run, '--json')
    expect(shown, shown.stderr).toMatchObject({ code: 0 })
    await stack.compose('start', victim)
    await until(() => isHealthy(victim))
  },
)

/** The numbers of the retentions that the service has. */
async function landed(): Promise<number[]> {
  await stack.control('landLateEffects')
  const records = await stack.control<{ number: number }[]>('records', { resource: 'retentions' })
  return records.map(({ number }) => number).toSorted((one, other) => one - other)
}
