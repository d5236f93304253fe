import { expect, test } from 'vitest'
import { useCoverage } from '../../core/destinations/warehouse-gone.ts'
import { day, readOn } from '../../core/destinations/use-warehouse.ts'
import { usePostgres } from './use-postgres.ts'

const {
  harness,
  toPublication,
  publish,
  publishPlan,
  list,
  full,
  first,
  changes,
  covered,
  run,
  states,
  contacts,
} = useCoverage(usePostgres())
const drop = (table: string) => [`drop view $.live_${table}`, `drop table $.${table}`]

const losses: [title: string, statements: string[], tables: string[]][] = [
  ['emptied the main table', ['delete from $.customers'], ['customers']],
  ['truncated a child table', ['truncate $.customer_contacts'], ['customer_contacts']],
  ['removed one record', [`delete from $.customers where id = 'b'`], ['customers']],
  ['removed one child row', [`delete from $.customer_contacts where id = '2'`], ['customer_contacts']],
  ['dropped a child table', drop('customer_contacts'), ['customer_contacts']],
  [
    'dropped all tables',
    [...drop('customer_contacts'), ...drop('customers')],
    ['customers', 'customer_contacts'],
  ],
  ['dropped a column', ['alter table $.customers drop column name cascade'], ['customers']],
  ['marked a record', [`update $.customers set _deleted_at = _read_at where id = 'a'`], ['customers']],
  [
    'restored one table from the day before',
    [`update $.customers set _read_at = _read_at - interval '1 day' where id = 'a'`],
    ['customers'],
  ],
  [
    'added a row',
    [`insert into $.customer_contacts (customer_id, position) values ('c', 1)`],
    ['customer_contacts'],
  ],
  ['removed what exports had left', ['delete from $._held'], ['customers', 'customer_contacts']],
  ['dropped what exports had left', ['drop table $._held'], ['customers', 'customer_contacts']],
]

test.each(losses)(
  'is nothing, after somebody %s, until a full export brings it back',
  async (_title, statements, tables) => {
    await first()
    expect(await covered()).toBe(day(1))
    await run(...statements)
    expect(await covered()).toBeUndefined()
    const { manifest } = await changes(1, 2)
    expect(manifest).toMatchObject({ verdict: 'unproven', completeThrough: null })
    for (const table of tables) expect(manifest.reasons.join()).toContain(table)
    expect(await covered()).toBeUndefined()
    const { manifest: again } = await full(3)
    expect(again).toMatchObject({ verdict: 'proven' })
    expect(again.warnings).toBeUndefined()
    expect(await covered()).toBe(day(3))
    expect((await states()).filter((state) => !state.startsWith('d'))).toEqual([
      'a there',
      'b there',
      'c there',
    ])
    expect(await contacts()).toEqual(['a.1 1', 'a.2 2', 'b.1 3'])
  },
)

test.each([
  ['capped', { capped: true }],
  ['filtered', { filters: { status: 'active' } }],
  ['unproven', { facts: readOn(2, { verdict: 'unproven', reasons: ['a link was lost'] }) }],
  ['incremental', { mode: 'incremental', facts: readOn(2, { changedSince: day(1) }) }],
] as const)(
  'is nothing where an export that is %s filled what somebody had emptied',
  async (_title, more) => {
    const publication = await toPublication('full 1', list, { facts: readOn(1) })
    await harness.destination.publish(publication)
    await run('delete from $.customers', 'delete from $.customer_contacts')
    const { manifest } = await publish('part', list, { facts: readOn(2), ...more })
    // What people read of it: a reason or a warning.
    expect([...manifest.reasons, ...(manifest.warnings ?? [])].join()).toContain(
      'customers, customer_contacts',
    )
    expect(await covered()).toBeUndefined()
    // All rows are there again, and not because of the run that says so.
    await expect(harness.destination.publish(publication)).rejects.toMatchObject({
      name: 'AlreadyPublishedError',
    })
    expect((await changes(2, 3)).manifest.verdict).toBe('unproven')
    await full(4)
    expect(await covered()).toBe(day(4))
  },
)

test('is nothing after a full export that left newer records as they were, without their child rows', async () => {
  const older = [{ id: 'a', contacts: [{ id: '1' }] }, { id: 'b' }]
  const newer = [{ ...older[0]!, updated: day(1) }, { id: 'b' }]
  await publish('full 1', newer, { facts: readOn(1) })
  await run('delete from $.customer_contacts')
  // A replica that lags behind shows an older state of `a`.
  await publish('full 2', older, { facts: readOn(2) })
  expect(await contacts()).toEqual([])
  expect(await covered()).toBeUndefined()
  await publish('full 3', older, { facts: readOn(3) })
  expect(await covered()).toBeUndefined()
  await publish('full 4', newer, { facts: readOn(4) })
  expect(await contacts()).toEqual(['a.1 1'])
  expect(await covered()).toBe(day(4))
})

test('of a filter is nothing where it was lost, until a full export with that filter', async () => {
  const filters = { status: 'active' }
  await full(1, { filters })
  expect(await covered({ filters })).toBe(day(1))
  await run(`delete from $.customers where id = 'b'`)
  expect(await covered({ filters })).toBeUndefined()
  await full(2, { filters })
  expect(await covered({ filters })).toBe(day(2))
  expect(await covered()).toBeUndefined()
})

test('does not reach over an incremental export that was published without the ones before it', async () => {
  const { manifest } = await changes(1, 2)
  expect(manifest).toMatchObject({
    verdict: 'unproven',
    reasons: [expect.stringContaining(`no proven export of the whole list that reaches ${day(1)}`)],
  })
  await full(3)
  expect((await changes(4, 5)).manifest.verdict).toBe('unproven')
  expect(await covered()).toBe(day(3))
})

test('is told of documents, too, which no list brings back', async () => {
  const fetched = (id: string) => publishPlan(id, { mode: 'byId' }, id)
  await fetched('1')
  expect((await fetched('2')).manifest.warnings).toBeUndefined()
  await run(`delete from $.plans where id = '1'`)
  expect((await fetched('3')).manifest.warnings).toEqual([
    expect.stringMatching(/ of plans since the last export\. Fetch the missing documents again\.$/),
  ])
})

test('marks nothing as deleted for when somebody says that it was seen', async () => {
  await first()
  await full(4)
  await run(`update $.customers set _read_at = timestamptz '2026-03-01 03:00:00+00' where id = 'a'`)
  await changes(4, 5, [{ id: 'b' }])
  expect(await states()).toEqual(['a there', 'b there', 'c there'])
})
