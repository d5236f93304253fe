import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { putFile, quick, startImport } from '../import/world.ts'
import { connectTemporal, createWorld, folderOf, rowsOf, startRun, startTestWorker } from './world.ts'

const incremental = { mode: 'incremental', lookbackSeconds: 0 } as const

/** A service, its worker, and a way to run an export to its end. */
async function setUp(options: SandboxOptions) {
  const world = await createWorld(options)
  await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
  const client = await connectTemporal()
  const run = async (input: ExportInput) => (await startRun({ client, world, input })).result()
  return { control: world.sandbox.control, run }
}

/** A gateway whose own clock writes the Date of every answer. */
async function startGateway({ to, aheadMs }: { to: string; aheadMs: number }): Promise<string> {
  const server = createServer((request, response) => {
    const { authorization = '', 'x-simple-workspace': workspace = '' } = request.headers
    const headers = { authorization, 'x-simple-workspace': String(workspace) }
    void fetch(`${to}${request.url}`, { headers }).then(async (answer) => {
      const date = new Date(Date.now() + aheadMs).toUTCString()
      response.writeHead(answer.status, { 'content-type': 'application/json', date })
      response.end(await answer.text())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('what changed between two incremental exports is in the second', () => {
  test('where no answer carries a Date, and this machine is ahead of the service', async () => {
    const { control, run } = await setUp({
      counts: { customers: 200 },
      dateHeader: false,
      clockSkewSeconds: -600,
    })
    const input = { ...incremental, resources: ['customers' as const] }
    await run(input)
    const id = String(control.ids({ resource: 'customers' })[7])
    control.update({ resource: 'customers', id, fields: { name: 'changed' } })
    const rows = await rowsOf(await run(input), 'customers')
    expect(rows).toContainEqual(expect.objectContaining({ id, name: 'changed' }))
  })

  test('where the Date of the answers is far ahead of the clock that writes `updated`', async () => {
    const world = await createWorld({ counts: { customers: 200 } })
    const gateway = await startGateway({ to: world.sandbox.url, aheadMs: 600_000 })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0', BILLING_BASE_URL: gateway })
    const client = await connectTemporal()
    const input = { ...incremental, resources: ['customers' as const] }
    const run = async () => (await startRun({ client, world, input })).result()
    await run()
    const { control } = world.sandbox
    const id = String(control.ids({ resource: 'customers' })[7])
    control.update({ resource: 'customers', id, fields: { name: 'changed' } })
    const second = await run()
    expect(folderOf(second, 'customers')).toMatch(/-incremental$/)
    expect(await rowsOf(second, 'customers')).toContainEqual(expect.objectContaining({ id, name: 'changed' }))
  })

  test('where the list does not show the status that it changed to', async () => {
    const hide = { kind: 'hide', statuses: ['cancelled'] } as const
    const { control, run } = await setUp({ counts: { subscriptions: 200 }, faults: [hide] })
    const input = { ...incremental, resources: ['subscriptions' as const] }
    await run(input)
    const changed = control.ids({ resource: 'subscriptions' }).slice(0, 5).map(String)
    for (const id of changed)
      control.update({ resource: 'subscriptions', id, fields: { status: 'cancelled' } })
    const rows = await rowsOf(await run(input), 'subscriptions')
    for (const id of changed)
      expect(rows).toContainEqual(expect.objectContaining({ id, status: 'cancelled' }))
  })

  test('where our own import changed contacts, which moves no `updated` of their customers', async () => {
    const world = await createWorld({ counts: { customers: 60 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const client = await connectTemporal()
    const input = {
      ...incremental,
      resources: ['customers' as const],
      to: ['csv' as const, 'duckdb' as const],
    }
    const ask = (sql: string) => askDuckDb(join(world.dataDir, 'warehouse.duckdb'), sql)
    const next = async () => {
      const { run, verdict } = await (await startRun({ client, world, input })).result()
      const [row] = (await ask(
        `select mode, cast(scope as text) as scope from _exports where run = '${run}'`,
      ))!
      return { verdict, ...row }
    }
    const unseen = expect.stringContaining('does not see a change of contacts or aggregations')
    expect(await next()).toMatchObject({ mode: 'full', scope: expect.not.stringContaining('does not see') })
    expect(await next()).toMatchObject({ verdict: 'proven', mode: 'incremental', scope: unseen })
    const [{ id } = {}] = (await ask('select min(id) as id from customer_contacts'))!
    const file = await putFile(world, `id,phone\n${id},+56911112222\n`, 'contacts.csv')
    const imported = await startImport({ client, world, input: { kind: 'update-contacts', file, ...quick } })
    expect(await imported.result()).toMatchObject({ counts: { done: 1 } })
    expect(await next()).toMatchObject({
      verdict: 'proven',
      mode: 'full',
      scope: expect.stringContaining('The whole list was read, because imports have changed contacts'),
    })
    expect(await ask(`select phone from customer_contacts where id = '${id}'`)).toEqual([
      { phone: '+56911112222' },
    ])
    expect(await next()).toMatchObject({ mode: 'incremental' })
  })

  test('and so is a column that was left out before', async () => {
    const { run } = await setUp({ counts: { customers: 150 } })
    const input = { ...incremental, resources: ['customers' as const] }
    await run({ ...input, exclude: ['customers.email'] })
    const rows = await rowsOf(await run(input), 'customers')
    expect(rows).toHaveLength(150)
    expect(rows.filter(({ email }) => email?.includes('@')).length).toBeGreaterThan(100)
  })
})
