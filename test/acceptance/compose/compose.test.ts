import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Client } from '@temporalio/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { exportData } from '../../../workflows/export-run.ts'
import type { importFile } from '../../../workflows/import-file.ts'
import { openBrowser } from '../browser.ts'
import { openUi } from '../console/temporal-ui.ts'
import { until } from '../../system/export/world.ts'
import { retentionsCsv } from '../../system/import/world.ts'
import { openStack, type Stack } from './stack.ts'

const customers = 2_000
let stack: Stack
let client: Client

beforeAll(async () => {
  stack = await openStack({
    sandbox: {
      counts: { customers, subscriptions: 60, plans: 20, retentions: 0, addons: 0, orders: 0 },
      needsAttention: 0,
    },
  })
  await stack.compose('up', '--detach', '--no-build')
  await until(async () => (await state('worker')).Health === 'healthy')
  client = await stack.connect()
}, 240_000)
afterAll(async () => {
  await client?.connection.close()
  await stack?.close()
}, 120_000)

async function state(service: string) {
  const found = (await stack.containers()).find(({ Service }) => Service === service)
  return found ?? { Service: service, State: 'absent', Health: '', ExitCode: 0 }
}

const startExport = (name: string, input: Parameters<typeof exportData>[0] = {}) =>
  client.workflow.start<typeof exportData>('exportData', {
    workflowId: name,
    taskQueue: stack.taskQueue,
    args: [input],
  })

let rowsSoFar = 0
/** An import of so many retentions, no two alike in all tests, whose names say which import they are of. */
async function startImport(name: string, rows: number, input: { approval?: boolean } = {}) {
  await stack.put(`data/${name}.csv`, retentionsCsv(rows, { mark: name, from: rowsSoFar + 1 }))
  rowsSoFar += rows
  return client.workflow.start<typeof importFile>('importFile', {
    workflowId: name,
    taskQueue: stack.taskQueue,
    args: [{ kind: 'retentions', file: `${name}.csv`, ...input }],
  })
}

/** How many records the service has of an import, and of how many rows. */
async function landed(name: string): Promise<{ records: number; rows: number }> {
  await stack.control('landLateEffects')
  const records = await stack.control<{ lines: { name: string }[] }[]>('records', { resource: 'retentions' })
  const names = records.map(({ lines }) => lines[0]?.name ?? '').filter((one) => one.startsWith(`${name} `))
  return { records: names.length, rows: new Set(names).size }
}

test('every service comes up, healthy where it says so, and `check` finds nothing wrong', async () => {
  const containers = await stack.containers()
  expect(
    Object.fromEntries(
      containers.map(({ Service, State, Health, ExitCode }) => [Service, `${State} ${Health || ExitCode}`]),
    ),
  ).toEqual({
    postgresql: 'running healthy',
    'temporal-schema': 'exited 0',
    temporal: 'running healthy',
    'temporal-namespace': 'exited 0',
    'temporal-ui': 'running 0',
    console: 'running 0',
    sandbox: 'running 0',
    worker: 'running healthy',
  })
  expect(await stack.connector('run', 'report', 'nothing')).toMatchObject({ code: 2 })
  const { code, stdout, stderr } = await stack.connector('check')
  expect({ code, stderr }).toMatchObject({ code: 0 })
  expect(stdout).toContain('A worker for acc_demo listens')
  expect(stdout).not.toContain('WRONG')
})

test('the UI says LIVE and the workspace on every page, and answers to no other name', async () => {
  await until(
    async () =>
      await fetch(stack.uiUrl).then(
        ({ ok }) => ok,
        () => false,
      ),
  )
  const page = await (await fetch(stack.uiUrl)).text()
  expect(page).toContain('content:"LIVE acc_demo"')
  const port = new URL(stack.uiUrl).port
  const name = `evil.example:${port}`
  await expect(
    stack.engine.podman(
      'run',
      '--rm',
      '--network=host',
      '--entrypoint=bash',
      'docker.io/library/node:24-slim',
      '-c',
      `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET / HTTP/1.1\\r\\nHost: ${name}\\r\\n\\r\\n' >&3; cat <&3`,
    ),
  ).resolves.toBe('')
})

test('an export by command proves all lists, and its files are the owner’s alone', async () => {
  const { code, stdout, stderr } = await stack.connector('export', '--to', 'csv,duckdb', '--json')
  expect({ code, stderr }).toMatchObject({ code: 0 })
  const { exports } = JSON.parse(stdout) as {
    exports: { resource: string; verdict: string; records: number }[]
  }
  expect(exports.map(({ verdict }) => verdict)).toEqual(Array(8).fill('proven'))
  expect((await readdir(join(stack.dataDir, 'exports'))).toSorted()).toEqual(
    expect.arrayContaining(['customers', 'plans', 'retentions', 'subscriptions']),
  )
})

test('an import waits for a person, is approved in the UI behind the banner, and sends each row once', async () => {
  const run = await startImport('march', 30, { approval: true })
  const browser = await openBrowser()
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } })
  const ui = openUi({ page, uiUrl: stack.uiUrl })
  await ui.open('march')
  await ui.detailsSay('waiting for a person')
  await ui.detailsSay('30 rows')
  expect(await landed('march')).toEqual({ records: 0, rows: 0 })
  await ui.update('approve', { by: 'Ana', why: 'the totals are those of the sheet' })
  expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 30 } })
  expect(await landed('march')).toEqual({ records: 30, rows: 30 })
})

test('a schedule that `schedule apply` reads from ./data runs at its slot, and is proven', async () => {
  await stack.put(
    'data/schedules.yaml',
    'timezone: America/Santiago\nschedules:\n  plans-often:\n    workflow: exportData\n    input: { resources: [plans] }\n    every: 10s\n',
  )
  const applied = await stack.connector('schedule', 'apply', '--yes')
  expect(applied, applied.stderr).toMatchObject({ code: 0 })
  const query = 'TemporalScheduledById = "plans-often" AND Verdict = "proven"'
  await until(async () => (await client.workflow.count(query)).count > 0)
  const removed = await stack.connector('schedule', 'delete', 'plans-often', '--yes')
  expect(removed, removed.stderr).toMatchObject({ code: 0 })
})

const kill = (service: string) => async () => {
  await stack.compose('kill', service)
  await stack.compose('start', service)
}
const restart = (service: string) => () => stack.compose('restart', service)

test.each([
  ['the worker is restarted', restart('worker')],
  ['the worker is killed', kill('worker')],
  ['PostgreSQL is restarted', restart('postgresql')],
  ['PostgreSQL is killed', kill('postgresql')],
  ['Temporal is restarted', restart('temporal')],
  ['Temporal is killed', kill('temporal')],
])('%s during an export and an import: both end proven, each row sent once', async (case_, interrupt) => {
  const name = case_.replaceAll(' ', '-')
  const before = await stack.control<{ effects: number }>('counters')
  const slow = (on: string, ms: number) => ({ kind: 'latency', on, ms })
  await stack.control('setFaults', {
    faults: [slow('GET /customers/', 1_500), slow('POST /retentions/', 1_000)],
  })
  const exporting = await startExport(`export-${name}`, { resources: ['customers'] })
  const importing = await startImport(name, 40)
  await until(async () => {
    const { status } = await importing.describe()
    return (
      status.name !== 'RUNNING' ||
      (await stack.control<typeof before>('counters')).effects > before.effects + 4
    )
  })
  await interrupt()
  await stack.control('setFaults', { faults: [] })
  expect(await importing.result()).toMatchObject({ verdict: 'proven', counts: { done: 40 } })
  expect(await exporting.result()).toMatchObject({ verdict: 'proven' })
  expect(await landed(name)).toEqual({ records: 40, rows: 40 })
  // After a restart, Temporal must not wait a minute for the address that it had before.
  expect(await stack.compose('logs', '--no-color', 'temporal')).not.toContain('unable to bootstrap ringpop')
})
