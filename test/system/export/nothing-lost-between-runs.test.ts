import { describe, expect, test } from 'vitest'
import { putFile, quick, startImport } from '../import/world.ts'
import { connectTemporal, createWorld, manifestOf, rowsOf, runExport, startTestWorker } from './world.ts'

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
    const input = { ...incremental, resources: ['customers' as const] }
    const next = async () => {
      const report = await runExport(world, input)
      const { verdict, mode, scope } = await manifestOf(report, 'customers')
      const contacts = await rowsOf(report, 'customers', 'customer_contacts')
      return { verdict, mode, scope: scope.join(), contacts }
    }
    const unseen = expect.stringContaining('does not see a change of contacts or aggregations')
    const first = await next()
    expect(first).toMatchObject({ mode: 'full', scope: expect.not.stringContaining('does not see') })
    expect(await next()).toMatchObject({ verdict: 'proven', mode: 'incremental', scope: unseen })
    const { id } = first.contacts[0]!
    const file = await putFile(world, `id,phone\n${id},+56911112222\n`, 'contacts.csv')
    const imported = await startImport({ client, world, input: { kind: 'update-contacts', file, ...quick } })
    expect(await imported.result()).toMatchObject({ counts: { done: 1 } })
    expect(await next()).toMatchObject({
      verdict: 'proven',
      mode: 'full',
      scope: expect.stringContaining('The whole list was read, because imports have changed contacts'),
      contacts: expect.arrayContaining([expect.objectContaining({ id, phone: '+56911112222' })]),
    })
    expect(await next()).toMatchObject({ mode: 'incremental' })
  })
})
