import type { Client } from '@temporalio/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Connection, Client as TemporalClient } from '@temporalio/client'
import { inject } from 'vitest'
import type { Fault } from '../../../sandbox/faults.ts'
import type { ImportKindName } from '../../../core/imports/kinds.ts'
import { openTestWorker, openWorld, until, type World } from '../export/world.ts'
import { ordersCsv, putFile, quick, sheetOf, startImport } from './world.ts'

const rows = 60
let world: World
let client: Client
let close: () => Promise<void>

beforeAll(async () => {
  world = await openWorld({
    counts: { customers: 80, subscriptions: rows, plans: 5, retentions: 0, orders: rows },
  })
  const worker = await openTestWorker(world)
  const connection = await Connection.connect({ address: inject('temporalAddress') })
  client = new TemporalClient({ connection })
  close = async () => {
    await connection.close()
    await worker.stop()
    await world.close()
  }
})
afterAll(() => close())

/** Replies lost after and before the effect, and failures of both sorts. */
const faultsOn = (on: string): Fault[] => [
  { kind: 'reset', effect: 'done', on, requests: [3, 11, 24] },
  { kind: 'reset', effect: 'none', on, requests: [7, 18] },
  { kind: 'error', effect: 'done', on, requests: [14, 30] },
  { kind: 'error', effect: 'none', on, requests: [21] },
]

async function importOf(kind: ImportKindName, text: string, on: string) {
  world.sandbox.control.setFaults({ faults: faultsOn(on) })
  const from = world.sandbox.control.requests().at(-1)?.request ?? 0
  const file = await putFile(world, text, `${kind}.csv`)
  const run = await startImport({ client, world, input: { kind, file, ...quick, concurrency: 1, canary: 0 } })
  if (kind === 'delete-orders') {
    await until(async () => (await run.query<{ waitingFor?: unknown }>('status')).waitingFor !== undefined)
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'old', count: rows }] })
  }
  const result = await run.result()
  const requests = world.sandbox.control.requests({ after: from })
  return { result, writes: requests.filter(({ method }) => method !== 'GET').length }
}

const records = <T>(resource: 'products' | 'customers' | 'subscriptions') =>
  [...world.sandbox.control.records({ resource })].map((text) => JSON.parse(text) as T)

test('products are made at most once, and each in doubt is parked and named', async () => {
  const names = Array.from({ length: rows }, (_, index) => `Producto ${index + 1}`)
  const csv = ['name,unit_label', ...names.map((name) => `${name},mes`), ''].join('\n')
  const { result, writes } = await importOf('products', csv, 'POST /products/')
  expect(result).toMatchObject({ verdict: 'unproven', counts: { done: 52, parked: 8 } })
  expect(writes).toBe(rows)
  const made = Map.groupBy(records<{ name: string }>('products'), ({ name }) => name)
  expect(names.filter((name) => (made.get(name)?.length ?? 0) > 1)).toEqual([])
  const sheet = await sheetOf(result, 'results')
  expect(
    sheet.filter((row) => row['_status'] === 'done' && made.get(row['name'] ?? '')?.length !== 1),
  ).toEqual([])
  const parked = await sheetOf(result, 'parked')
  expect(parked.every((row) => row['_look'] === `product: name ${row['name']}`)).toBe(true)
})

test('contacts end as the file says, also where a reply was lost', async () => {
  type Contact = { id: string; phone: string | null; name: string }
  const contacts = () =>
    records<{ contacts: Contact[] }>('customers').flatMap((customer) => customer.contacts)
  const before = contacts().slice(0, rows)
  const csv = ['id,phone', ...before.map(({ id }, index) => `${id},+569${10_000 + index}`), ''].join('\n')
  const { result, writes } = await importOf('update-contacts', csv, 'PATCH /contacts/{id}/')
  expect(result).toMatchObject({ verdict: 'proven', by: 'answer', counts: { done: rows } })
  // Eight were sent once more.
  expect(writes).toBe(rows + 8)
  const after = new Map(contacts().map((contact) => [contact.id, contact]))
  expect(before.map(({ id }) => after.get(id)?.phone)).toEqual(
    before.map((_, index) => `+569${10_000 + index}`),
  )
  expect(before.map(({ id }) => after.get(id)?.name)).toEqual(before.map(({ name }) => name))
})

test('subscriptions end as the file says; with lines in it, those in doubt are not sent again', async () => {
  type Subscription = { id: string; note: string | null; lines: { plan: string; quantity: number }[] }
  const before = records<Subscription>('subscriptions')
  const on = 'PATCH /subscriptions/{id}/'
  const notes = ['id,note', ...before.map(({ id }, index) => `${id},nota ${index}`), ''].join('\n')
  const plain = await importOf('update-subscriptions', notes, on)
  expect(plain.result).toMatchObject({ verdict: 'proven', counts: { done: rows } })
  expect(plain.writes).toBe(rows + 8)
  const noted = new Map(records<Subscription>('subscriptions').map((one) => [one.id, one]))
  expect(before.map(({ id }) => noted.get(id)?.note)).toEqual(before.map((_, index) => `nota ${index}`))
  expect(before.map(({ id }) => noted.get(id)?.lines)).toEqual(before.map(({ lines }) => lines))

  const lines = before.map(({ id, lines: [line] }) => `${id},${line?.plan},7`)
  const csv = ['id,lines.1.plan,lines.1.quantity', ...lines, ''].join('\n')
  const withLines = await importOf('update-subscriptions', csv, on)
  expect(withLines.result).toMatchObject({ verdict: 'unproven', counts: { done: 52, parked: 8 } })
  expect(withLines.writes).toBe(rows)
  const done = new Set(
    (await sheetOf(withLines.result, 'results')).flatMap((row) =>
      row['_status'] === 'done' ? [row['id']] : [],
    ),
  )
  const changed = records<Subscription>('subscriptions').filter(({ id }) => done.has(id))
  expect(changed.every(({ lines: [line, ...more] }) => line?.quantity === 7 && more.length === 0)).toBe(true)
})

test('orders are gone, and a 404 of one that was sent before is what success looks like', async () => {
  const ids = world.sandbox.control.ids({ resource: 'orders' })
  const { result, writes } = await importOf('delete-orders', ordersCsv(ids), 'DELETE /orders/{id}/')
  expect(result).toMatchObject({ verdict: 'proven', counts: { done: rows, rejected: 0 } })
  expect(writes).toBe(rows + 8)
  expect(world.sandbox.control.ids({ resource: 'orders' })).toEqual([])
})
