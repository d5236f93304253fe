import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Billing } from '../../../core/billing/client.ts'
import { toReadOptions } from '../../../core/exports/parts/read-plan.ts'
import { findRepeatedIds, openIdSet } from '../../../core/exports/parts/written-ids.ts'
import { readList } from '../../../core/reading/read-list.ts'
import { customers } from '../../../core/billing/resources/customers.ts'
import { toInstant } from '../../../core/billing/instants.ts'
import { createRowEncoder } from '../../../core/tables/row-encoder.ts'
import { createPlan } from '../../system/export/plan.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'
import { newMachine, readDeps, readOn } from './machine.ts'
import { writePart } from './write-part.ts'

const ids = ['plain', 'a,b', 'say "hi"', 'two\nlines', 'carriage\rreturn', '007', "' quoted '"]

const toIdentity = (id: string) => ({ id, created: undefined })

/** The set of what a part holds, closed after the test. */
async function openSet(of: Partial<Parameters<typeof openIdSet>[0]> & { folder: string }) {
  const usual = { name: 'a', parts: [], rejected: [], toWritten: (id: string) => id, created: -1 }
  const set = await openIdSet({ ...usual, ...of })
  onTestFinished(() => set.close())
  return set
}

async function write(text: string) {
  const folder = await temporaryFolder()
  const path = join(folder, 'customers.a.part')
  return { folder, part: await writePart({ table: 'customers', path, text, rows: ids.length }) }
}

const privacies = [
  ['as they are', {}],
  ['hashed', { hash: ['customers.id'], hashKey: 'key' }],
] as const

test.each(privacies)(
  'ids that were written %s are known again, whatever is in them',
  async (_how, privacy) => {
    const encoder = createRowEncoder({ resource: customers, privacy })
    const { folder, part } = await write(encoder.encode(ids.map((id) => ({ id }))).tables[0]!.text)
    const set = await openSet({ folder, parts: [part], toWritten: encoder.toWrittenId })
    const known = ids.map(() => false)
    expect(set.add([...ids, 'another', 'another'].map(toIdentity))).toEqual([...known, true, false])
  },
)

test('another `created` under a known id is another record, each of which is written once', async () => {
  const [older, newer] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z']
  const encoder = createRowEncoder({ resource: customers, privacy: {} })
  const { text } = encoder.encode([{ id: 'a', created: older }, { id: 'b' }]).tables[0]!
  const { folder, part } = await write(text)
  const created = encoder.tables[0]!.columns.findIndex(({ name }) => name === 'created')
  const set = await openSet({ folder, parts: [part], created })
  const add = (id: string, created?: string) => set.add([{ id, created: toInstant(created) }])
  expect([add('a', older), add('a'), add('a', newer)]).toEqual([[false], [false], [true]])
  expect([add('a', newer), add('b', newer)]).toEqual([[false], [false]])
})

test.each(privacies)(
  'ids that several rows have, written %s, are found and no others',
  async (_, privacy) => {
    const encoder = createRowEncoder({ resource: customers, privacy })
    const others = Array.from({ length: 2_000 }, (_, at) => `cus_${at}`)
    const all = [...others, ...ids, 'cus_17', 'two\nlines', 'cus_17']
    const { part } = await write(encoder.encode(all.map((id) => ({ id }))).tables[0]!.text)
    const found = await findRepeatedIds([{ ...part, rows: all.length }])
    const written = (id: string) => encoder.toWrittenId(id)
    expect(found.map((id) => id.replaceAll('"', '')).toSorted()).toEqual(
      [written('cus_17'), written('two\nlines')].toSorted(),
    )
    const { part: once } = await write(encoder.encode(others.map((id) => ({ id }))).tables[0]!.text)
    expect(await findRepeatedIds([{ ...once, rows: others.length }])).toEqual([])
  },
)

test.each([
  ['hashed', { hash: ['customers.email', 'customers.created'] }],
  ['excluded', { exclude: ['customers.created'] }],
])('an incremental read with columns that are %s knows what it has written', async (_, privacy) => {
  const machine = await newMachine()
  const time = '2026-01-01T00:00:00Z'
  const records = Array.from({ length: 3 }, (_, at) => ({ id: `${at}`, created: time, updated: time }))
  const page = { records, count: 3, next: null, servedAt: undefined }
  const deps = { ...machine, ...readDeps, hashKey: 'key' }
  const plan = createPlan({ run: 'r', since: { customers: 0 }, ...privacy })
  const billing = { list: () => Promise.resolve(page) } as unknown as Billing
  const cancelled = new AbortController().signal
  const options = toReadOptions({ deps, plan, resource: 'customers', billing, cancelled })
  const open: Parameters<typeof readOn>[1]['open'] = (written) => readList({ ...options, ...written })
  const end = await readOn(machine, { deps, plan, resource: 'customers', open })
  expect(end.outcome).toMatchObject({ verdict: 'proven', records: 3 })
})

test('ids that several of very many rows have are found without a stop that costs the step its heartbeats', async () => {
  const sort = vi.spyOn(Float64Array.prototype, 'sort')
  onTestFinished(() => sort.mockRestore())
  const all = Array.from({ length: 1_100_000 }, (_, at) => `cus_${at}`)
  const { part } = await write(`${[...all, 'cus_1', 'cus_1099999'].join('\n')}\n`)
  expect((await findRepeatedIds([{ ...part, rows: all.length + 2 }])).toSorted()).toEqual([
    'cus_1',
    'cus_1099999',
  ])
  const sorted = sort.mock.contexts.map((hashes) => (hashes as Float64Array).length)
  expect(sorted.reduce((sum, length) => sum + length, 0)).toBe(all.length + 2)
  expect(Math.max(...sorted)).toBeLessThan(600_000)
})

test('a part that is gone or has other bytes is damaged', async () => {
  const { folder, part } = await write('a\n')
  const open = (options: { path?: string; sha256?: string }) =>
    openSet({ folder, parts: [{ ...part, ...options }] })
  await expect(open({ path: join(folder, 'gone') })).rejects.toThrow(/can't be read/)
  await expect(open({ sha256: 'of other bytes' })).rejects.toThrow(/has other bytes than were written/)
})

test('a rejected line that was written is known again, apart from any id', async () => {
  const text = '{"reason":"it has no id","record":{"name":"línea\\u2028"}}\n'
  const { folder, part } = await write(text)
  const set = await openSet({ folder, rejected: [part] })
  const line = text.trimEnd()
  expect(set.addLines([line, 'another'])).toEqual([false, true])
  expect(set.addLines(['another'])).toEqual([false])
  expect(set.add([line, 'another'].map(toIdentity))).toEqual([true, true])
})

test('records without an id that differ in what is private are all written, and known again', async () => {
  const line = '{"reason":"the record has no id","record":{}}'
  const { folder, part } = await write(`${line}\n${line}\n`)
  const set = await openSet({ folder, rejected: [part] })
  expect(set.addLines([line, line, line])).toEqual([false, false, true])
  expect(set.addLines([line, line, line])).toEqual([false, false, false])
})

test.each(privacies)(
  'a record that has an id, written %s, and no row is known again',
  async (_how, privacy) => {
    const encoder = createRowEncoder({ resource: customers, privacy })
    const metadata: unknown = JSON.parse('['.repeat(600) + ']'.repeat(600))
    const { text } = encoder.encode([{ id: 'deep', metadata }]).rejected
    const { folder, part } = await write(text)
    const set = await openSet({ folder, rejected: [part], toWritten: encoder.toWrittenId })
    expect(set.add(['deep', 'another'].map(toIdentity))).toEqual([false, true])
  },
)

test('a worker that has nothing of a read yet builds its set all the same', async () => {
  const { folder, part } = await write('a\n')
  const set = await openSet({ folder: join(folder, 'nothing yet'), parts: [part] })
  expect(set.add(['a', 'b'].map(toIdentity))).toEqual([false, true])
})
