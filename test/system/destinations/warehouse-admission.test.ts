import { describe, expect, test } from 'vitest'
import type { Publication } from '../../../core/destinations/destination.ts'
import { day, readOn, useWarehouse } from '../../core/destinations/use-warehouse.ts'
import { usePostgres } from './use-postgres.ts'

const {
  harness,
  workplace,
  toPublication,
  publish,
  publishPlan,
  once,
  publishFirst,
  ask,
  drop,
  customers,
  states,
} = useWarehouse(usePostgres())

test.each<[string, () => Promise<unknown>, string[]?]>([
  [
    'tables someone dropped and another run made again',
    async () => {
      await drop('customers', 'customer_contacts')
      await publish('changes', [{ id: 'c' }], { facts: readOn(2), mode: 'incremental' })
    },
    ['a there', 'b there', 'c there'],
  ],
  ['rows someone removed', () => ask(`delete from ${harness.schema}.customers`), ['a there', 'b there']],
  ['rejected entries someone dropped with their table', () => ask(`drop table ${harness.schema}._rejected`)],
])('never says that a run is published whose %s', async (_title, damage, restored) => {
  const publication = await workplace.toPublication(
    'customers',
    [['{"id":"a"}', '{"id":"b"}', '["no object"]']],
    { run: 'full', facts: readOn(1) },
  )
  await harness.destination.publish(publication)
  await damage()
  const again = await harness.destination.publish(publication).catch((error: unknown) => error)
  if (again instanceof Error) expect(again.name).toBe('AlreadyPublishedError')
  else expect(await states()).toEqual(restored)
})

test('refuses a list before it is read while the newest read of it there is from the future', async () => {
  const read = await toPublication('first', [{ id: 'a' }], { facts: readOn(5) })
  const check = (now: string, of = read) =>
    harness.destination.checkBeforeRead(of, { reads: [of], now: Date.parse(now) })
  await harness.destination.publish(read)
  await expect(check(day(4))).rejects.toMatchObject({
    name: 'NotAdmittedError',
    message: expect.stringMatching(
      new RegExp(`^.* has a read of customers from the future: the run first .*${day(5)}.* Nothing was read`),
    ),
  })
  await check(day(6))
  // The clocks of two workers may differ by seconds.
  await check(new Date(Date.parse(day(5)) - 4_000).toISOString())
  await check(day(4), { ...read, resource: 'plans' })
})

test.each([
  ['full', {}],
  ['incremental', { mode: 'incremental' }],
  ['filtered', { filters: { status: 'active' } }],
  ['capped', { capped: true }],
  ['by id', { mode: 'byId' }],
] as [string, Partial<Publication>][])(
  'refuses a read that is older than the newest one of the resource there, with one sentence (%s)',
  async (_title, more) => {
    const first = await toPublication('first', [{ id: 'a' }, { id: 'b' }], { facts: readOn(1) })
    await once('a first and a third read', async () => {
      await harness.destination.publish(first)
      await publish('third', [{ id: 'a' }, { id: 'c' }], { facts: readOn(3) })
    })
    const before = await customers()
    await expect(publish('second', [{ id: 'b' }], { facts: readOn(2), ...more })).rejects.toMatchObject({
      name: 'NotAdmittedError',
      message: expect.stringMatching(
        new RegExp(
          `^.*later read of customers: the run third .*${day(3)}, and second at ${day(2)}.*Start a new export`,
        ),
      ),
    })
    expect(await customers()).toEqual(before)
    expect(await ask(`select run from ${harness.schema}._exports order by run`)).toEqual([
      { run: 'first' },
      { run: 'third' },
    ])
    // What is there already stays published, and the order is that of one resource.
    expect(await harness.destination.publish(first)).toMatchObject({ fresh: false })
    expect(await publishPlan('plans', { facts: readOn(2) })).toMatchObject({ fresh: true })
  },
)

test('warns of records that it kept because they are newer, and counts their rows', async () => {
  await publish('new', [{ id: 'a', updated: day(2), contacts: [{ id: '1' }] }], { facts: readOn(2) })
  const stale = [{ id: 'a', contacts: [{ id: '1' }, { id: '2' }] }, { id: 'b' }]
  const { manifest } = await publish('stale', stale, { facts: readOn(3) })
  expect(manifest.tables).toMatchObject([
    { rows: 2, kept: 1 },
    { rows: 2, kept: 2 },
  ])
  expect(manifest.warnings).toEqual([
    'Kept as before, because the service has an older `updated`: 1 customer. If it was restored from a backup, export to a new schema or file.',
  ])
})

test('counts new and changed records, and not those that it replaces as they were', async () => {
  const first = await publish('first', [{ id: 'a' }, { id: 'b', updated: day(1) }], {
    facts: readOn(1),
  })
  const second = await publish(
    'second',
    [{ id: 'a' }, { id: 'b', updated: day(2) }, { id: 'c' }, { id: 'd' }],
    { facts: readOn(2) },
  )
  expect(first.manifest.changes).toEqual({ new: 2, changed: 0 })
  expect(second.manifest.changes).toEqual({ new: 2, changed: 1 })
  const stale = await publish('stale', [{ id: 'b', updated: day(1) }], { facts: readOn(3) })
  expect(stale.manifest.changes).toEqual({ new: 0, changed: 0 })
})

test('shows nothing when another number of rows arrives than was read', async () => {
  const publication = await toPublication('first', [{ id: 'a' }])
  const parts = publication.parts.map((part, at) => (at === 0 ? { ...part, rows: 2 } : part))
  await expect(harness.destination.publish({ ...publication, parts })).rejects.toMatchObject({
    name: 'PartsDamagedError',
    message: expect.stringContaining('customers: 2 rows were read'),
  })
  await publish('second', [{ id: 'a' }])
  expect(await customers()).toMatchObject([{ id: 'a', run: 'second' }])
})

describe('the account in `_exports`', () => {
  test('has one row for each resource and run, with its own verdict', async () => {
    await publish('first', [{ id: 'a' }], { facts: readOn(1) })
    await publish('first', [{ id: 'a' }], { facts: readOn(1) })
    const plans = await workplace.toPublication('plans', [], {
      run: 'first',
      mode: 'incremental',
      filters: { status: 'active' },
      facts: readOn(1, { verdict: 'unproven', reasons: ["a 'link' was lost"], completeThrough: null }),
    })
    await harness.destination.publish(plans)
    expect(
      await ask(`select run, resource, mode, filters, verdict, reasons, rows,
        case when complete_through = timestamptz '${day(1)}' then 'yes' end as complete,
        case when published_at is not null then 'yes' end as published
        from ${harness.schema}._exports order by resource`),
    ).toEqual([
      {
        run: 'first',
        resource: 'customers',
        mode: 'full',
        filters: '{}',
        verdict: 'proven',
        reasons: '[]',
        rows: '1',
        complete: 'yes',
        published: 'yes',
      },
      {
        run: 'first',
        resource: 'plans',
        mode: 'incremental',
        filters: '{"status":"active"}',
        verdict: 'unproven',
        reasons: `["a 'link' was lost"]`,
        rows: '0',
        complete: null,
        published: 'yes',
      },
    ])
  })
})

describe('the form of its values', () => {
  const named = { excluded: ['customers.name', 'customers.contacts.email'] }
  const hashed = { hashed: ['customers.tax_id'], hashedWith: 'key a' }
  const both = { ...named, ...hashed }

  test.each([
    [
      'all values',
      {},
      [
        [named, 'without customers.name, customers.contacts.email'],
        [hashed, 'with customers.tax_id hashed'],
      ],
    ],
    [
      'fewer columns',
      named,
      [
        [{}, 'with all values as they are'],
        [{ excluded: ['customers.name'] }, 'without customers.name'],
        [{ excluded: [...named.excluded, 'customers.tax_id'] }, 'tax_id'],
      ],
    ],
    [
      'hashes',
      hashed,
      [
        [{}, 'with all values as they are'],
        [{ ...hashed, hashed: ['customers.id'] }, 'with customers.id hashed'],
        [{ ...hashed, hashedWith: 'key b' }, 'hashed with another key'],
      ],
    ],
    ['fewer columns and hashes', both, [[{ ...both, excluded: [] }, 'with customers.tax_id hashed']]],
  ] as [string, Partial<Publication>, [Partial<Publication>, string][]][])(
    'is that of its first publication: one with %s takes no others, however they are published',
    async (_title, first, others) => {
      await publish('first', [{ id: 'a' }], { facts: readOn(1), ...first })
      const now = Date.parse(day(2))
      const late = await toPublication('late', [{ id: 'b' }], { facts: readOn(1) })
      const check = (other: Partial<Publication>, reads = other) =>
        harness.destination.checkBeforeRead({ ...late, ...other }, { reads: [{ ...late, ...reads }], now })
      for (const [other, words] of others) {
        for (const more of [
          { facts: readOn(2) },
          { facts: readOn(2, { changedSince: day(1) }), mode: 'incremental' },
        ] as const)
          await expect(harness.destination.publish({ ...late, ...other, ...more })).rejects.toMatchObject({
            name: 'NotAdmittedError',
            message: expect.stringContaining(words),
          })
        await expect(check(other)).rejects.toThrow(words)
      }
      expect(await states()).toEqual(['a there'])
      await publish('second', [{ id: 'a' }], { facts: readOn(2), ...first })
      await check(others[0]![0], first)
    },
  )

  test('is that of each resource, but all have one key', async () => {
    await publish('first', [{ id: 'a' }], both)
    await publishPlan('first')
    await publishPlan('second')
    const subscriptions = await workplace.toPublication('subscriptions', [['{"id":"s"}']], {
      hashed: ['subscriptions.customer'],
      hashedWith: 'key b',
    })
    await expect(harness.destination.publish(subscriptions)).rejects.toThrow('hashed with another key')
    await harness.destination.publish({ ...subscriptions, hashedWith: 'key a' })
  })
})

describe('whose warehouse it is', () => {
  test.each([
    ['workspace', { workspace: 'acc_2' }, 'acc_2'],
    ['address', { baseUrl: 'https://other.example/api' }, 'https://other.example/api'],
  ])('is refused to another %s, in a sentence', async (word, other, told) => {
    await publishFirst([{ id: 'a' }])
    await expect(publish('second', [], { facts: readOn(2), ...other })).rejects.toMatchObject({
      name: 'NotAdmittedError',
      message: expect.stringMatching(new RegExp(`${word} .*not ${told}`)),
    })
    expect(await states()).toEqual(['a there'])
  })

  test('does not depend on how the same address is written, and shows no password', async () => {
    await publishFirst([{ id: 'a' }])
    const baseUrl = 'https://user:secret@BILLING.example/api/v1/'
    await publish('second', [{ id: 'a' }], { facts: readOn(2), baseUrl })
    expect(await ask(`select base_url, mode from ${harness.schema}._warehouse`)).toEqual([
      { base_url: 'https://billing.example/api/v1', mode: 'live' },
    ])
  })
})
