import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { putFile, quick, startImport } from '../import/world.ts'
import { connectTemporal, createWorld, rowsOf, runExport, startTestWorker } from './world.ts'

const incremental = { mode: 'incremental', lookbackSeconds: 0 } as const

describe('what changed between two incremental exports is in the second', () => {
  test('where the list does not show the status that it changed to', async () => {
    const hide = { kind: 'hide', statuses: ['cancelled'] } as const
    const world = await createWorld({ counts: { subscriptions: 200 }, faults: [hide] })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const { control } = world.sandbox
    const input = { ...incremental, resources: ['subscriptions' as const] }
    const run = async () => runExport(world, input)
    await run()
    const changed = control.ids({ resource: 'subscriptions' }).slice(0, 5).map(String)
    for (const id of changed)
      control.update({ resource: 'subscriptions', id, fields: { status: 'cancelled' } })
    const rows = await rowsOf(await run(), 'subscriptions')
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
      const { run, verdict } = await runExport(world, input)
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
})
