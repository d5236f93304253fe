import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Publication } from '../../../core/destinations/destination.ts'
import type { Workplace } from './publication.ts'
import { type Customer, day, readOn, useWarehouse, type WarehouseHarness } from './use-warehouse.ts'

type Open = (workplace: Workplace) => Promise<WarehouseHarness>

/** A customer that is in the list from one day to another, and changed on a third, if that lies between. */
const lives = fc.record({
  id: fc.constantFrom('a', 'b', 'c', 'd'),
  from: fc.integer({ min: 1, max: 6 }),
  until: fc.integer({ min: 2, max: 8 }),
  changed: fc.integer({ min: 1, max: 8 }),
})
const histories = fc
  .uniqueArray(lives, { selector: ({ id }) => id, minLength: 1 })
  .map((history) => history.toSorted((one, other) => one.id.localeCompare(other.id)))
type Life = { id: string; from: number; until: number; changed: number }

/** Reads of different days, the first one first. */
const someReads = fc
  .uniqueArray(fc.record({ date: fc.integer({ min: 1, max: 7 }), full: fc.boolean() }), {
    selector: ({ date }) => date,
    minLength: 2,
    maxLength: 4,
  })
  .map((reads) => reads.toSorted((one, other) => one.date - other.date))
type Read = { date: number; full: boolean }

/** The records that a read sees: all of them, or those that changed in the two days before it. */
function seenBy({ date, full }: Read, history: readonly Life[]): (Customer & { updated: string })[] {
  return history
    .filter(({ from, until }) => from <= date && date < until)
    .map(({ id, from, changed }) => {
      const isChanged = changed > from && changed <= date
      return {
        id,
        name: isChanged ? 'second' : 'first',
        created: day(from),
        updated: day(isChanged ? changed : from),
        contacts: isChanged ? [] : [{ id: 'con' }],
      }
    })
    .filter(({ updated }) => full || Date.parse(updated) > Date.parse(day(date)) - 2 * 86_400_000)
}

/** Each record as the last read saw it that did, and gone if a later one of the whole list did not. */
function expectedAfter(reads: readonly Read[], history: readonly Life[]) {
  return history.flatMap((life) => {
    const sightings = reads.flatMap((read) =>
      seenBy(read, [life]).map(({ id, name }) => ({ id, name, date: read.date })),
    )
    const last = sightings.toSorted((one, other) => other.date - one.date)[0]
    if (last === undefined) return []
    const isGone = reads.some(({ date, full }) => full && date > last.date && life.from <= date)
    return [{ id: last.id, name: last.name, state: isGone ? 'gone' : 'there' }]
  })
}

/** A warehouse with a list of three customers, and what it says it covers. */
export function useCoverage(open: Open) {
  const warehouse = useWarehouse(open)
  const { harness, toPublication, publish, once, ask } = warehouse
  const list: readonly Customer[] = [
    { id: 'a', contacts: [{ id: '1' }, { id: '2' }] },
    { id: 'b', contacts: [{ id: '3' }] },
    { id: 'c' },
  ]
  const full = (on = 1, more: Partial<Publication> = {}) =>
    publish(`full ${on}`, list, { facts: readOn(on), ...more })
  const first = () => once('full 1', () => full())
  const changes = (
    from: number,
    to: number,
    customers: readonly Customer[] = [{ id: 'd', updated: day(from) }],
  ) =>
    publish(`changes ${to}`, customers, {
      facts: readOn(to, { changedSince: day(from) }),
      mode: 'incremental',
    })
  const covered = async (more: Partial<Publication> = {}) => {
    const publication = await toPublication('asks', [], more)
    const at = await harness.destination.coveredThrough(publication, publication)
    return at === undefined ? undefined : new Date(at).toISOString()
  }
  const run = async (...statements: string[]) => {
    for (const statement of statements) await ask(statement.replaceAll('$', harness.schema))
  }
  return { ...warehouse, list, full, first, changes, covered, run }
}

/** What every warehouse knows of records that are no longer there, in its list or among its own rows. */
export function describeGone(name: string, open: Open): void {
  describe(`records that are gone from the ${name} warehouse`, () => {
    const {
      harness,
      toPublication,
      publish,
      publishPlan,
      ask,
      list,
      full,
      first,
      changes,
      covered,
      run,
      customers,
      states,
      contacts,
    } = useCoverage(open)

    test('are marked after a proven read of the whole list, with their children, and unmarked when they come back', async () => {
      const both = [
        { id: 'a', contacts: [{ id: '1' }] },
        { id: 'b', contacts: [{ id: '2' }] },
      ]
      await publish('first', both, { facts: readOn(1) })
      const { manifest } = await publish('second', [both[0]!], { facts: readOn(2) })
      expect(manifest.deletes).toEqual({ marked: 1, heldBack: 0, first: ['b'] })
      expect(await states()).toEqual(['a there', 'b gone'])
      const marked = (table: string) =>
        ask(
          `select _run_id as run from ${harness.schema}.${table} where _deleted_at = timestamptz '${day(2)}'`,
        )
      expect([await marked('customers'), await marked('customer_contacts')]).toEqual([
        [{ run: 'first' }],
        [{ run: 'first' }],
      ])
      await publish('third', both, { facts: readOn(3), mode: 'incremental' })
      expect(await states()).toEqual(['a there', 'b there'])
      expect(
        await ask(`select id from ${harness.schema}.customer_contacts where _deleted_at is not null`),
      ).toEqual([])
    })

    test('ends with each record as the last read saw it, and marks those that a later read of the whole list lacks', async () => {
      const { schema } = harness
      await publish('makes the tables', [])
      await fc.assert(
        fc.asyncProperty(histories, someReads, async (history, reads) => {
          for (const table of ['customers', 'customer_contacts', '_exports'])
            await harness.ask(`delete from ${schema}.${table}`)
          for (const read of reads)
            await publish(`day ${read.date}`, seenBy(read, history), {
              facts: readOn(read.date),
              mode: read.full ? 'full' : 'incremental',
            })
          const rows = (await customers()).map(({ id, name, state }) => ({ id, name, state }))
          expect(rows).toEqual(expectedAfter(reads, history))
          const children = history.filter(({ id }) =>
            rows.some((row) => row['id'] === id && row['name'] === 'first'),
          )
          expect(await contacts()).toEqual(children.map(({ id }) => `${id}.1 con`))
        }),
        { seed: 20260301, numRuns: Number(process.env['MERGE_RUNS'] ?? 4) },
      )
    })

    test.each([
      ['truncated a child table', 'truncate $.customer_contacts'],
      [
        'restored one record from the day before',
        `update $.customers set _read_at = _read_at - interval '1 day' where id = 'a'`,
      ],
    ])('are missed in what it covers, after somebody %s, until a full export', async (_title, sql) => {
      await first()
      expect(await covered()).toBe(day(1))
      await run(sql)
      expect(await covered()).toBeUndefined()
      expect((await changes(1, 2)).manifest).toMatchObject({ verdict: 'unproven', completeThrough: null })
      await full(3)
      expect(await covered()).toBe(day(3))
    })

    test('are not missed in what it covers where exports have marked them', async () => {
      const many = Array.from({ length: 30 }, (_, at) => ({ id: `m${at}`, contacts: [{ id: `c${at}` }] }))
      await publish('full 1', [...list, ...many], { facts: readOn(1) })
      expect((await changes(1, 2)).manifest.verdict).toBe('proven')
      await full(3, { filters: { status: 'active' } })
      await full(4, { capped: true })
      expect((await changes(2, 5)).manifest.verdict).toBe('proven')
      expect(await covered()).toBe(day(5))
      // 30 records are gone: they are held back, then marked by a publication that is there already.
      const gone = await toPublication('full 6', [...list, { id: 'd', updated: day(1) }], {
        facts: readOn(6),
      })
      expect((await harness.destination.publish(gone)).manifest.deletes).toMatchObject({ heldBack: 30 })
      expect(await harness.destination.publish({ ...gone, maxDeletes: 'all' })).toMatchObject({
        fresh: false,
        manifest: { deletes: { marked: 30 } },
      })
      expect(await covered()).toBe(day(6))
      // A refused read takes nothing from what newer ones cover.
      await expect(publish('late', list, { facts: readOn(2) })).rejects.toThrow('later read')
      expect(await covered()).toBe(day(6))
      expect((await changes(6, 7)).manifest).toMatchObject({ verdict: 'proven' })
      expect(await covered()).toBe(day(7))
      await publishPlan('plans', { facts: readOn(8) })
      expect(await covered()).toBe(day(7))
    })

    test('have no child rows left, and others no marks of somebody, after a full read', async () => {
      const live = async (table: string) =>
        (await ask(`select * from ${harness.schema}.live_${table} order by id`)).map(({ id }) => id)
      await publish('full 1', [...list, { id: 'gone', contacts: [{ id: '4' }] }], { facts: readOn(1) })
      await full(2)
      expect(await live('customer_contacts')).toEqual(['1', '2', '3'])
      await run(
        `update $.customers set _deleted_at = timestamptz '2026-03-03 04:00:00+00' where id = 'a'`,
        `delete from $.customers where id = 'b'`,
        'update $.customer_contacts set _deleted_at = null',
      )
      await publish('full 3', [list[0]!, list[2]!], { facts: readOn(3) })
      expect(await live('customers')).toEqual(['a', 'c'])
      expect(await live('customer_contacts')).toEqual(['1', '2'])
      expect(await covered()).toBe(day(3))
    })

    test('are missed in the order of the publications, whatever the clocks of the machines', async () => {
      await first()
      await run(`update $._exports set published_at = published_at + interval '1 day'`)
      await ask(`update ${harness.schema}._exports set manifest = cast(regexp_replace(cast(manifest as text),
        '"publishedAt": ?"[^"]*"', '"publishedAt":"2126-01-01T00:00:00.000Z"') as json)`)
      await run('delete from $.customers')
      await publish('part', [{ id: 'd' }], { facts: readOn(2), capped: true })
      expect(await covered()).toBeUndefined()
      expect((await changes(2, 3)).manifest.verdict).toBe('unproven')
    })
  })
}
