import { describe, expect, test } from 'vitest'
import type { Billing, ListQuery } from '../../../core/billing/client.ts'
import type { ListPage } from '../../../core/billing/reply.ts'
import { newestPage } from '../../../core/changes/audit-retentions.ts'
import { retentionKey } from '../../../core/changes/kinds/create-retention.ts'
import { findExisting } from '../../../core/imports/existing-in-service.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { clientOf, startSandbox, withoutEnd } from '../changes/engine.ts'

type Known = Record<string, unknown> & { id: number; supplier: string; created: string }
/** Changes an answer of the list; `asked`: how many such answers there were before. */
type Distorts = (page: ListPage, asked: number, of: { document: unknown; newest: unknown }) => ListPage

const unordered = { lists: { retentions: { orderings: [], defaultOrdering: 'updated' as const } } }
const empty = (page: ListPage): ListPage => ({ ...page, records: [], count: 0, next: null })
const strange = (page: ListPage): ListPage => ({
  ...page,
  records: [...page.records, { id: 1, supplier: 'sup_y' }],
})
const without = (page: ListPage, isLeftOut: (record: Known) => boolean): ListPage => {
  const records = page.records.filter((record) => !isLeftOut(record as Known))
  const isWhole = records.length === page.records.length
  return isWhole ? page : { ...page, records, count: records.length, next: null }
}

/** Of the retentions in the service, three are in the file, and one of the file is nowhere. */
async function look({
  count = 1_000,
  file = (rows: object[]) => rows,
  filtered = (page) => page,
  whole = (page) => page,
  ...options
}: SandboxOptions & {
  count?: number
  file?: (rows: Known[]) => object[]
  filtered?: Distorts
  whole?: Distorts
} = {}) {
  const sandbox = await startSandbox({ counts: { retentions: count }, ...options })
  const texts = [...sandbox.control.records({ resource: 'retentions' })]
  const known = [3, 500, count - 1].flatMap((at) =>
    texts[at] === undefined ? [] : [JSON.parse(texts[at]) as Known],
  )
  const rows = file([...known, { ...known[0], supplier: 'sup_x', number: 1 } as Known])
  const service = clientOf(sandbox)
  const asked = { filtered: 0, whole: 0 }
  const of = { document: known[0]?.['document'], newest: known.at(-1)?.id }
  const list = async (query: ListQuery) => {
    const page = await service.list(query)
    return query.filters?.['supplier'] === undefined
      ? whole(page, asked.whole++, of)
      : filtered(page, asked.filtered++, of)
  }
  const billing: Billing = { ...service, list }
  const found = await findExisting({
    billing,
    lookups: new Set(rows.map((row) => retentionKey(row as Known))),
    newest: await newestPage({ billing }),
    testMode: false,
    readLagMs: 1_000,
    signal: new AbortController().signal,
  })
  const { requests } = sandbox.control.counters()
  const there = known.map(({ id }) => String(id))
  return { requests, found, ids: [...found.ids.values()].flat(), there }
}

describe('what the service has already', () => {
  test('is asked for row by row if that is less than the list, with a control after an absent row', async () => {
    const { requests, found, ids, there } = await look()
    expect(found.reasons).toEqual([])
    expect(ids).toEqual(there)
    expect(requests).toBe(7)
  })

  test.each<[string, Parameters<typeof look>[0]]>([
    ['ignore what they are given', { faults: [{ kind: 'ignoreFilters', on: 'GET /retentions/' }] }],
    ['answer one row with another record', { filtered: (page, asked) => (asked ? page : strange(page)) }],
    ['find nothing', { filtered: empty }],
    [
      'find nothing for one row, and then ignore what they are given',
      { filtered: (page, asked) => [empty, strange][asked]?.(page) ?? page },
    ],
    ['begin to find after the first lookup', { filtered: (page, asked) => (asked < 1 ? empty(page) : page) }],
    ['find nothing for a while', { filtered: (page, asked) => (asked < 2 ? empty(page) : page) }],
    ['find nothing from some time on', { filtered: (page, asked) => (asked < 2 ? page : empty(page)) }],
    [
      'find nothing new, as in an old replica',
      { filtered: (page, _, { newest }) => without(page, ({ id }) => id === newest) },
    ],
    [
      'do not find one type of document',
      { filtered: (page, _, { document }) => without(page, (record) => record['document'] === document) },
    ],
  ])('is read from the list where filters %s, so that none of it is made twice', async (_, service) => {
    const { requests, found, ids, there } = await look(service)
    expect(found.reasons).toEqual([])
    expect(ids.toSorted()).toEqual(there.toSorted())
    expect(requests).toBeGreaterThan(10)
  })

  test('is read from the list where that shows no control, because no newer retention has its type of document', async () => {
    const { requests, found } = await look({ file: () => [{ supplier: 'sup_x', document: 99, number: 1 }] })
    expect(found).toEqual({ ids: new Map(), reasons: [] })
    expect(requests).toBeGreaterThan(10)
  })

  test('costs no more than reading the list once', async () => {
    const file = () =>
      Array.from({ length: 9 }, (_, at) => ({ supplier: 'sup_x', document: 7, number: at + 1 }))
    const { requests, found } = await look({ file })
    expect(found).toEqual({ ids: new Map(), reasons: [] })
    expect(requests).toBeLessThan(15)
  })

  test('is not known, with that reason, where the service repeats the last page of the list endlessly', async () => {
    const sandbox = await startSandbox({ counts: { retentions: 500 } })
    const billing = withoutEnd(clientOf(sandbox), 500)
    const found = await findExisting({
      billing,
      lookups: new Set([retentionKey({ supplier: 'sup_x', document: 99, number: 1 })]),
      newest: { ...(await newestPage({ billing })), count: 100 },
      testMode: false,
      readLagMs: 1_000,
      signal: new AbortController().signal,
    })
    expect(found.reasons).toContainEqual(expect.stringContaining('the service repeats pages'))
    expect(sandbox.control.counters().requests).toBeLessThan(120)
  })

  test('is nothing where the service has no retention at all', async () => {
    const { found } = await look({ count: 0, file: () => [{ supplier: 'sup_x', document: 7, number: 1 }] })
    expect(found).toEqual({ ids: new Map(), reasons: [] })
  })

  test('is looked up row by row where the list cannot be read in its order', async () => {
    const file = (rows: Known[]) => rows.flatMap(spelled)
    const { found, ids, there } = await look({ ...unordered, count: 950, file })
    expect(found.reasons).toEqual([])
    expect(new Set(ids)).toEqual(new Set(there))
  })

  test.each<[string, Parameters<typeof look>[0]]>([
    ['its list has no order and its filters find nothing', { ...unordered, filtered: empty }],
    [
      'its list is empty for a while',
      { filtered: empty, whole: (page, asked) => (asked === 0 ? page : empty(page)) },
    ],
  ])('is not known where %s', async (_, service) => {
    const { found } = await look(service)
    expect(found.reasons).not.toEqual([])
  })

  test.each([
    ['by lookups', 1],
    ['in the list', 20],
  ])(
    'is found under another spelling of its supplier if the service takes it for the same, %s',
    async (_, copies) => {
      const named = (name: string, row: Known) => ({ ...row, supplier: name })
      const file = (rows: Known[]) =>
        Array.from({ length: copies }, (_, copy) => [
          named(rows[0]!.supplier.toUpperCase(), rows[0]!),
          { ...rows[1]!, number: 900_000 + copy },
        ]).flat()
      // This service compares suppliers without case.
      const { ids, there } = await look({
        file,
        faults: [{ kind: 'ignoreFilters', filters: ['supplier'], on: 'GET /retentions/' }],
      })
      expect(ids).toEqual([there[0]])
    },
  )
})

/** Enough rows that reading the list is less than looking up each. */
const spelled = (row: object): object[] => [row, { ...row, number: 800_001 }, { ...row, number: 800_002 }]
