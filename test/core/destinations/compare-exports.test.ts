import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { listResources, type ListName } from '../../../core/billing/resources/lists.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { compareExports } from '../../../core/destinations/files/compare.ts'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { memoryLimits } from '../../../core/destinations/duckdb/open.ts'
import { usualBuffer } from '../../../core/destinations/duckdb/rows.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import type { ReadFacts } from '../../../core/destinations/manifest.ts'
import { toFields, type Privacy } from '../../../core/tables/privacy.ts'
import { createWorkplace, facts, type Workplace } from './publication.ts'

let workplace: Workplace
beforeEach(async () => {
  workplace = await createWorkplace()
  return () => workplace.close()
})

type Record = { [field: string]: unknown }

interface Export {
  resource?: ListName
  more?: Partial<Publication>
  privacy?: Privacy
  to?: 'csv' | 'parquet'
}

/** When each side was read; records are created in 2025, unless they say. */
const read = (month: number, more: Partial<ReadFacts> = {}): ReadFacts => ({
  ...facts,
  startedAt: `2026-0${month}-01T03:00:00.000Z`,
  finishedAt: `2026-0${month}-01T03:00:10.000Z`,
  completeThrough: `2026-0${month}-01T02:59:00.000000Z`,
  ...more,
})

let made = 0
async function publish(records: readonly (Record | string)[], of: Export & { facts: ReadFacts }) {
  const { resource = 'plans', more = {}, privacy = {}, to = 'csv', facts } = of
  const lines = records.map((record) =>
    typeof record === 'string' ? record : JSON.stringify({ created: '2025-01-01T00:00:00Z', ...record }),
  )
  const paths = (names: readonly string[] = [], action: 'exclude' | 'hash') =>
    toFields(listResources[resource], { names, action })
  const publication = await workplace.toPublication(
    resource,
    [lines],
    {
      run: `run-${made++}`,
      facts,
      excluded: paths(privacy.exclude, 'exclude'),
      hashed: paths(privacy.hash, 'hash'),
      ...(privacy.hashKey !== undefined && { hashedWith: privacy.hashKey }),
      ...more,
    },
    privacy,
  )
  const destination = to === 'csv' ? createCsvDestination() : createParquetDestination()
  const { location, manifest } = await destination.publish(publication)
  return { folder: location, manifest }
}

const older = (records: readonly (Record | string)[], of: Export = {}) =>
  publish(records, { facts: read(1), ...of, ...(of.more?.facts && { facts: of.more.facts }) })
const newer = (records: readonly (Record | string)[], of: Export = {}) =>
  publish(records, { facts: read(2), ...of, ...(of.more?.facts && { facts: of.more.facts }) })

type Side = Awaited<ReturnType<typeof publish>>

/** The comparison, and the lines of `changes.csv`. */
async function compare(older: Side, newer: Side) {
  const out = join(workplace.folder, `changes-${made++}.csv`)
  const changes = await compareExports({ older, newer, out })
  const [head, ...lines] = (await readFile(out, 'utf8')).trimEnd().split('\n')
  expect(head).toBe('_change,id,table,position,field,before,after')
  const left = (await readdir(workplace.folder)).filter((name) => name.endsWith('.tmp'))
  expect(left).toEqual([])
  return { ...changes, lines }
}

/** The balance of a column: its currency, then opening, new, gone, changed and closing. */
const balances = (sums: Awaited<ReturnType<typeof compare>>['sums'], column: string) =>
  sums
    .filter((sum) => sum.column === column)
    .map((sum) => [sum.currency, sum.opening, sum.new, sum.gone, sum.changed, sum.closing])

const plan = (id: string, amount: string | null, currency: string | null, more: Record = {}) =>
  JSON.stringify({ id, created: '2025-01-01T00:00:00Z', currency, name: id, ...more }).replace(
    /}$/,
    amount === null ? ',"amount":null}' : `,"amount":${amount}}`,
  )

test('counts what is new, gone, changed and unchanged, and balances the sums of each currency', async () => {
  const before = await older([
    plan('same', '10.10', 'USD'),
    plan('gone', '5', 'CLP'),
    plan('dearer', '1.005', 'USD'),
    plan('moved', '7', 'USD'),
    plan('renamed', null, null),
  ])
  const after = await newer([
    plan('same', '10.10', 'USD'),
    plan('new', '3.3', 'EUR'),
    plan('dearer', '2.5', 'USD'),
    plan('moved', '7', 'CLP'),
    plan('renamed', null, null, { name: 'other, "name"' }),
  ])
  const { verdict, reasons, records, sums, apart, lines } = await compare(before, after)
  expect({ verdict, reasons, apart }).toEqual({ verdict: 'proven', reasons: [], apart: [] })
  expect(records).toEqual({ opening: 5, new: 1, gone: 1, changed: 3, unchanged: 1, closing: 5 })
  expect(balances(sums, 'plans.amount')).toEqual([
    ['CLP', '5', '0', '5', '7', '7'],
    ['EUR', '0.0', '3.3', '0.0', '0.0', '3.3'],
    ['USD', '18.105', '0.000', '0.000', '-5.505', '12.600'],
  ])
  expect(lines).toEqual([
    'changed,dearer,plans,,amount,1.005,2.5',
    'gone,gone,,,,,',
    'changed,moved,plans,,currency,USD,CLP',
    'new,new,,,,,',
    'changed,renamed,plans,,name,renamed,"other, ""name"""',
  ])
})

/** A plan in USD with tiers. */
const tiers = (id: string, ...tiers: Record[]) => ({ id, currency: 'USD', tiers })

test.each(['csv', 'parquet'] as const)(
  'counts a record whose child rows changed as changed (%s)',
  async (to) => {
    const of: Export = { to }
    const before = await older(
      [
        tiers('same', { unit_scheme: 'a', amount: 1 }, { unit_scheme: 'b', amount: 2 }),
        tiers('more', { unit_scheme: 'a', amount: 1 }),
        tiers('less', { unit_scheme: 'a', amount: 1.5 }, { unit_scheme: 'b', amount: 2 }),
        tiers('other', { unit_scheme: 'a', amount: 1, quantity_to: 5 }),
        tiers('swapped', { unit_scheme: 'a', amount: 1 }, { unit_scheme: 'b', amount: 2 }),
        tiers('gone', { unit_scheme: 'a', amount: 4 }),
      ],
      of,
    )
    const after = await newer(
      [
        tiers('same', { unit_scheme: 'a', amount: 1 }, { unit_scheme: 'b', amount: 2 }),
        tiers('more', { unit_scheme: 'a', amount: 1 }, { unit_scheme: '' }),
        tiers('less', { unit_scheme: 'a', amount: 1.5 }),
        tiers('other', { unit_scheme: 'a', amount: 3, quantity_to: 5 }),
        tiers('swapped', { unit_scheme: 'b', amount: 2 }, { unit_scheme: 'a', amount: 1 }),
      ],
      of,
    )
    const { records, sums, lines: written } = await compare(before, after)
    expect(records).toEqual({ opening: 6, new: 0, gone: 1, changed: 4, unchanged: 1, closing: 5 })
    expect(balances(sums, 'plan_tiers.amount')).toEqual([['USD', '15.5', '0.0', '4.0', '0.0', '11.5']])
    expect(written).toEqual([
      'gone,gone,,,,,',
      'changed,less,plan_tiers,2,position,2,',
      'changed,less,plan_tiers,2,amount,2,',
      'changed,less,plan_tiers,2,unit_scheme,b,',
      'changed,more,plan_tiers,2,position,,2',
      'changed,more,plan_tiers,2,unit_scheme,,""',
      'changed,other,plan_tiers,1,amount,1,3',
      'changed,swapped,plan_tiers,1,amount,1,2',
      'changed,swapped,plan_tiers,1,unit_scheme,a,b',
      'changed,swapped,plan_tiers,2,amount,2,1',
      'changed,swapped,plan_tiers,2,unit_scheme,b,a',
    ])
  },
)

/** Values that a format writes in its own way. */
const peculiar = [
  plan('long', '1234567890123456789012345678901234567890.123456789012345678901234567890', 'USD', {
    name: 'a "quoted", name\nof two lines',
    sku: '=1+1',
  }),
  plan('power', '15e-1', 'USD', { sku: '01000', unknown: { a: [1, 'é'] } }),
  plan('negative', '-0.5', 'USD', { sku: '', exempt: true }),
  plan('fine', '0.123456789', 'CLP', {
    sku: '3-4',
    created: '2025-01-01T00:00:00.5-03:00',
    tiers: [{ amount: 2.5 }],
  }),
  plan('none', null, null, { sku: "'=x", unknown: 1 }),
  // Half a pair of surrogates, which DuckDB does not read as JSON.
  plan('half', '-98765432109876543210987654321.5', 'CLP', { unknown: '\ud800' }),
  plan('half without amount', null, 'CLP', { sku: 'a\rb', unknown: ['\ud800'] }),
  // What Parquet calls an amount that does not fit is a field of the service here.
  plan('own', null, 'CLP', { _misfits: { amount: '5' } }),
  '{"_misfits":{"amount":{"a":"5"}},"id":"own, too","created":"2025-01-01T00:00:00Z","currency":"CLP","amount":1e-9}',
]

test('in any two formats, the same change is found and all other records are unchanged', async () => {
  const formats: Export[] = [{}, { more: { forExcel: true } }, { to: 'parquet' }]
  const publishAll = (publish: typeof older, records: readonly string[]) =>
    Promise.all(formats.map((format) => publish(records, format)))
  const [cell, other] = ['.123456789012345678901234567890', '.223456789012345678901234567890']
  const befores = await publishAll(older, peculiar)
  const changed = await publishAll(newer, peculiar.with(0, peculiar[0]!.replace(cell, other)))
  const whole = '1234567890123456789012345678901234567890'
  // Each format on each side, and two for Excel, which are both rewritten. What is the same in two pairs is in all.
  for (const [at, to] of [
    [0, 1],
    [1, 1],
    [1, 2],
    [2, 0],
  ] as const) {
    const pair = `from ${JSON.stringify(formats[at])} to ${JSON.stringify(formats[to])}`
    const { records, lines, sums } = await compare(befores[at]!, changed[to]!)
    expect(records, pair).toEqual({ opening: 9, new: 0, gone: 0, changed: 1, unchanged: 8, closing: 9 })
    expect(lines, pair).toEqual([`changed,long,plans,,amount,${whole}${cell},${whole}${other}`])
    const sum = sums.find(({ currency, column }) => currency === 'USD' && column === 'plans.amount')
    expect(sum, pair).toMatchObject({ changed: '0.100000000000000000000000000000' })
  }
})

const zeros = '0'.repeat(60)
const long = `1234567890123456789012345678901234567890.${zeros}1`

test.each([
  ['csv', 'csv'],
  ['csv', 'parquet'],
  ['parquet', 'parquet'],
] as const)('finds a number unchanged however it is written (%s, %s)', async (one, other) => {
  const pairs = [
    ['0', `0E-60`],
    ['-0', '0.00'],
    ['1E2', '100'],
    ['12345678901', `12345678901.${zeros}`],
    ['1E-20', '10.0e-21'],
    ['1e20', `1${'0'.repeat(20)}`],
    [long, `${long}${zeros}`],
    [`-${long}`, `-${long}0`],
  ]
  const [before, after] = [0, 1].map((at) => pairs.map((pair, id) => plan(`p${id}`, pair[at]!, 'USD')))
  const { records, lines } = await compare(
    await older([...before!, plan('z', long, 'USD')], { to: one }),
    await newer([...after!, plan('z', `${long}1`, 'USD')], { to: other }),
  )
  expect(records).toMatchObject({ changed: 1, unchanged: pairs.length })
  expect(lines).toEqual([`changed,z,plans,,amount,${long},${long}1`])
})

test('writes what a spreadsheet would run as a formula with the guard of result files', async () => {
  const name = '=HYPERLINK("https://example.com")'
  const { lines } = await compare(
    await older([plan('+a', '-1.5', 'USD', { name: '' })]),
    await newer([plan('+a', '-2.5', 'USD', { name })]),
  )
  expect(lines).toEqual([
    `changed,'+a,plans,,name,"","'=HYPERLINK(""https://example.com"")"`,
    "changed,'+a,plans,,amount,-1.5,-2.5",
  ])
})

test('reads rows that are longer than a buffer of DuckDB', async () => {
  const long = (end: string) => plan('long', '1', 'USD', { name: `${'x'.repeat(usualBuffer)}\n"${end}` })
  const short = plan('short', '2', 'USD', { name: 'a\n"b",\n' })
  const { records, lines } = await compare(await older([long('a'), short]), await newer([long('b'), short]))
  expect(records).toMatchObject({ changed: 1, unchanged: 1 })
  expect(lines.join().startsWith('changed,long,plans,,name,')).toBe(true)
})

test('says what helps where DuckDB has too little memory', async () => {
  const limits = { ...memoryLimits }
  onTestFinished(() => void Object.assign(memoryLimits, limits))
  Object.assign(memoryLimits, { compare: 1, most: 1 })
  await expect(compare(await older(peculiar), await newer(peculiar))).rejects.toThrow(
    'Compare two exports that are closer in time; if one field is very long, compare exports without it (--exclude).',
  )
})

describe('what may be concluded', () => {
  const unproven: Partial<ReadFacts> = { verdict: 'unproven', reasons: ['the chain broke'] }

  test.each<[Partial<Publication>, Partial<Publication>, RegExp?]>([
    [{}, {}],
    [
      { facts: read(1, unproven) },
      {},
      /^The older export is unproven \(the chain broke\): what counts as new may not be, and more may be gone\.$/,
    ],
    [
      {},
      { facts: read(2, unproven) },
      /^The newer .*\(the chain broke\): what counts as gone may still exist, and more may be new\.$/,
    ],
    [{ filters: { status: 'active' } }, {}, /older export has only records with status=active/],
    [{}, { capped: true }, /newer export ended before the list did/],
    [
      {},
      { mode: 'incremental', facts: read(2, { changedSince: '2026-01-01T00:00:00Z' }) },
      /newer export has only what changed since 2026-01-01T00:00:00Z/,
    ],
    [{}, { facts: read(2, { hiddenFound: true }) }, /newer export may lack records \(the list hides/],
    [
      {},
      { facts: read(2, { completeThrough: '2024-12-31T00:00:00Z' }) },
      /^Of what counts as gone, 1 may still exist: .* created after 2024-12-31T00:00:00Z\.$/,
    ],
  ])('of %j and %j: %s', async (before, after, reason) => {
    const changes = await compare(
      await older([plan('a', '1', 'USD'), plan('b', '1', 'USD')], { more: before }),
      await newer([plan('a', '1', 'USD')], { more: after }),
    )
    expect(changes.reasons).toEqual(reason ? [expect.stringMatching(reason)] : [])
    expect(changes.verdict).toBe(reason ? 'unproven' : 'proven')
  })
})

describe('refuses', () => {
  const ids = { hash: ['plans.id'], hashKey: 'key' }
  test.each<[string, Export, Export]>([
    ['one list', {}, { resource: 'customers' }],
    ['one mode', { more: { testMode: true } }, {}],
    ['name the older export first', { more: { facts: read(3) } }, {}],
    ['several records have one id', { more: { facts: read(1, { repeatedIds: ['a'] }) } }, {}],
    ['the same ids', { privacy: ids }, {}],
    ['the same ids', { privacy: ids }, { privacy: { ...ids, hashKey: 'other' } }],
  ])('what has no meaning: %s', async (words, before, after) => {
    const compared = compare(await older([{ id: 'a' }], before), await newer([{ id: 'a' }], after))
    const message = expect.stringContaining(words)
    await expect(compared).rejects.toMatchObject({ name: 'InvalidInput', message })
  })

  test('another workspace', async () => {
    const [before, after] = [await older([{ id: 'a' }]), await newer([{ id: 'a' }])]
    after.manifest.workspace = 'acc_2'
    await expect(compare(before, after)).rejects.toThrow('one is of acc_1, the other of acc_2')
  })

  test('what a warehouse has, whose rows are in no file', async () => {
    const [before, after] = [await older([{ id: 'a' }]), await newer([{ id: 'a' }])]
    after.manifest.destination = 'duckdb'
    for (const table of after.manifest.tables) table.files = []
    await expect(compare(before, after)).rejects.toMatchObject({
      name: 'InvalidInput',
      message: expect.stringContaining('run publish'),
    })
  })

  test('to write over a file, whatever it is', async () => {
    const [before, after] = [await older([{ id: 'a' }]), await newer([{ id: 'b' }])]
    const out = join(workplace.folder, 'changes.csv')
    await compareExports({ older: before, newer: after, out })
    await expect(compareExports({ older: before, newer: after, out })).rejects.toThrow('--out')
    expect(await readFile(out, 'utf8')).toContain('gone,a')
  })

  test('a place where it cannot write, and speaks of no publication', async () => {
    const [before, after] = [await older([{ id: 'a' }]), await newer([{ id: 'b' }])]
    const out = join(before.folder, 'manifest.json', 'changes.csv')
    await expect(compareExports({ older: before, newer: after, out })).rejects.toMatchObject({
      name: 'UnwritableError',
      message: `Can't write to ${out}: a part of the path is not a folder (ENOTDIR). Nothing was written; fix this and run it again.`,
    })
  })

  test('to go on when it is stopped, and leaves nothing', async () => {
    const [before, after] = [await older([{ id: 'a' }]), await newer([{ id: 'b' }])]
    const names = await readdir(workplace.folder)
    const stopped = new AbortController()
    const out = join(workplace.folder, 'changes.csv')
    const compared = compareExports({ older: before, newer: after, out, signal: stopped.signal })
    // Before its first statement, which nothing can interrupt yet.
    stopped.abort(new Error('stopped'))
    await expect(compared).rejects.toThrow('stopped')
    expect(await readdir(workplace.folder)).toEqual(names)
  })

  test('sums that are not those of the read', async () => {
    const [before, after] = [await older([plan('a', '1', 'USD')]), await newer([plan('a', '2', 'USD')])]
    after.manifest.totals.columns['plans.amount']!.byCurrency!['USD'] = '2.01'
    await expect(compare(before, after)).rejects.toMatchObject({ name: 'UnbalancedError' })
  })

  test.each([0, 1])('files that lack a row of the manifest, in table %i', async (at) => {
    const [before, after] = [await older([{ id: 'a' }]), await newer([{ id: 'a' }])]
    after.manifest.tables[at]!.rows += 1
    await expect(compare(before, after)).rejects.toMatchObject({ name: 'UnbalancedError' })
  })
})

describe('names what it does not compare', () => {
  const others = 'plans._extra may hold values of the others'
  const hashedWith = (hashKey: string): Export => ({ privacy: { hash: ['plans.sku'], hashKey } })
  const without = (name: string): Export => ({ privacy: { exclude: [name] } })
  test.each<[Export, Export, string[]]>([
    [without('plans.sku'), {}, ['plans.sku only in the newer', others]],
    [{}, hashedWith('key'), ['plans.sku in another form', others]],
    [hashedWith('key'), hashedWith('other'), ['plans.sku in another form', others]],
    [hashedWith('key'), hashedWith('key'), []],
    [without('plans._extra.x'), {}, [others]],
    [{}, without('plans.tiers'), ['plan_tiers only in the older', others]],
    [
      {},
      without('plan_tiers.amount'),
      ['plan_tiers.amount only in the older', 'plan_tiers._extra may hold values of the others', others],
    ],
    [{}, without('plans.amount'), ['plans.amount only in the older', others]],
  ])('of %j and %j', async (before, after, expected) => {
    const records = [
      plan('a', '1.5', 'USD', { sku: 's', x: 1, tiers: [{ amount: 2 }] }),
      plan('b', '1.5', 'USD', { sku: 't', x: 1 }),
    ]
    const changed = [records[0]!, plan('b', '1.5', 'USD', { sku: 't', x: 1, name: 'new' })]
    const { apart, lines } = await compare(await older(records, before), await newer(changed, after))
    expect(apart.map(({ name, why }) => `${name} ${why}`).toSorted()).toEqual(expected.toSorted())
    expect(lines).toEqual(['changed,b,plans,,name,b,new'])
  })

  test('a column of a newer schema, which is no change of every row', async () => {
    const records = [plan('a', '1', 'USD'), plan('b', '1', 'USD', { label: 'x' })]
    const [before, after] = [await older(records), await newer(records)]
    const [main] = before.manifest.tables
    // As if the older version had not known it.
    await rewrite(before, (cells) => cells.filter((_, at) => main!.columns[at]!.name !== 'sku'))
    main!.columns = main!.columns.filter(({ name }) => name !== 'sku')
    const { records: counted, apart } = await compare(before, after)
    expect(counted).toMatchObject({ changed: 0, unchanged: 2 })
    expect(apart.map(({ name }) => name).toSorted()).toEqual(['plans._extra', 'plans.sku'])
  })

  test('a table of a newer schema, which is no change of every record', async () => {
    const records = [tiers('a', { amount: 1 }), tiers('b', { amount: 2 })]
    const [before, after] = [await older(records), await newer(records)]
    // As if the older version had not known it, and had its rows in `_extra`.
    await rewrite(before, (cells) => (cells[0] === 'id' ? cells : [...cells.slice(0, -1), '{"tiers":[{}]}']))
    before.manifest.tables.splice(1, 1)
    const { records: counted, apart } = await compare(before, after)
    expect(counted).toMatchObject({ changed: 0, unchanged: 2 })
    expect(apart.map(({ name }) => name).toSorted()).toEqual(['plan_tiers', 'plans._extra'])
  })
})

async function rewrite({ folder }: Side, change: (cells: string[]) => string[]): Promise<void> {
  const path = join(folder, 'plans.csv')
  const rows = parse(await readFile(path))
  await writeFile(path, stringify(rows.map(change)))
}
