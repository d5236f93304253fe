import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Publication } from '../../../core/destinations/destination.ts'
import type { ReadFacts } from '../../../core/destinations/manifest.ts'
import type { Workplace } from './publication.ts'
import { type Customer, created, day, readOn, useWarehouse, type WarehouseHarness } from './use-warehouse.ts'

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

/** What every warehouse promises of records that are no longer in a list. */
export function describeDeletes(
  name: string,
  open: (workplace: Workplace) => Promise<WarehouseHarness>,
): void {
  describe(`deletes in the ${name} warehouse`, () => {
    const { harness, workplace, publish, publishFirst, ask, customers, states, contacts, many } =
      useWarehouse(open)

    describe('records that are gone', () => {
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

      test.each([
        ['unproven', { facts: readOn(2, { verdict: 'unproven', reasons: ['x'] }) }],
        ['filtered', { facts: readOn(2), filters: { status: 'active' } }],
        ['capped', { facts: readOn(2), capped: true }],
        ['incremental', { facts: readOn(2), mode: 'incremental' }],
        ['complete for nothing', { facts: readOn(2, { completeThrough: null }) }],
      ] as [string, Partial<Publication>][])(
        'are not marked after a read that is %s',
        async (_title, more) => {
          await publishFirst([{ id: 'a' }, { id: 'b' }])
          const { manifest } = await publish('second', [{ id: 'a' }], more)
          expect(manifest.deletes).toBeUndefined()
          expect(await states()).toEqual(['a there', 'b there'])
        },
      )

      test.each([
        [
          'could not take everything for a record',
          {},
          ['{"name":"no id"}'],
          /^1 customer was not seen \(b\).*1 of what came/,
        ],
        ['met hidden records', { hiddenFound: true }, [], /hides records by their status/],
        ['did not read what changed meanwhile', { statusCheck: 'unread' }, [], /may hide records by their/],
        ['can not tell what changed meanwhile', { statusCheck: 'unordered' }, [], /ordering=-updated/],
        [
          'can not see all that changed meanwhile',
          { statusCheck: 'unseen' },
          [],
          /than one page of a status/,
        ],
        ["has only this machine's clock", { clock: 'local' }, [], /sent no time/],
      ] as [string, Partial<ReadFacts>, string[], RegExp][])(
        'are not marked after a proven read that %s, whatever is allowed, and nobody is left to wonder why',
        async (_title, more, others, words) => {
          await publishFirst([{ id: 'a' }, { id: 'b' }])
          const second = await workplace.toPublication(
            'customers',
            [[JSON.stringify({ id: 'a', created, updated: created }), ...others]],
            { run: 'second', facts: readOn(2, more), maxDeletes: 'all' },
          )
          for (let time = 0; time < 2; time++) {
            const { manifest } = await harness.destination.publish(second)
            expect(manifest.deletes).toMatchObject({ marked: 0, heldBack: 1, first: ['b'] })
            expect(manifest.warnings).toEqual([expect.stringMatching(words)])
            expect(await states()).toEqual(['a there', 'b there'])
          }
        },
      )

      test('are not marked where they were created after what the read is complete for, or nobody knows when', async () => {
        await publish(
          'first',
          [{ id: 'a', created: day(3) }, { id: 'b', created: 'yesterday' }, { id: 'c' }],
          {
            facts: readOn(4),
          },
        )
        await publish('second', [], { facts: readOn(5, { completeThrough: '2026-03-02T23:59:59.999999Z' }) })
        expect(await states()).toEqual(['a there', 'b there', 'c gone'])
      })

      test('are not those that a read shows in an older state than the warehouse has', async () => {
        await publish('first', [{ id: 'a', name: 'new', updated: day(1) }, { id: 'b' }], { facts: readOn(1) })
        // A stale replica.
        await publish('second', [{ id: 'a', name: 'stale' }], { facts: readOn(2) })
        expect(await customers()).toMatchObject([
          { id: 'a', name: 'new', state: 'there' },
          { id: 'b', state: 'gone' },
        ])
        await publish('third', [{ id: 'b', updated: day(1) }], { facts: readOn(3) })
        await publish('fourth', [{ id: 'a', name: 'stale' }, { id: 'b' }], { facts: readOn(4) })
        expect(await customers()).toMatchObject([
          { id: 'a', name: 'new', state: 'there' },
          { id: 'b', state: 'there' },
        ])
      })

      test('are marked late, when a held back run is released, but for those that a later read has seen', async () => {
        await publish('first', many(12), { facts: readOn(1) })
        await publish('second', [], { facts: readOn(2) })
        await publish('third', many(1), { facts: readOn(3), mode: 'incremental' })
        const { manifest } = await publish('second', [], { facts: readOn(2), maxDeletes: 'all' })
        expect(manifest.deletes).toMatchObject({ marked: 11, heldBack: 0 })
        expect((await states()).filter((state) => state.endsWith('there'))).toEqual(['cus_000 there'])
      })

      test.each([
        [10, 12, undefined],
        [10, 100, undefined],
        [20, 200, undefined],
        [3, 12, 3],
        [12, 12, 'all'],
      ] as const)('are marked, %i of %i, where %s are allowed', async (gone, all, maxDeletes) => {
        await publishFirst(many(all))
        const allowed = maxDeletes === undefined ? {} : { maxDeletes }
        const { manifest } = await publish('second', many(all - gone), { facts: readOn(2), ...allowed })
        expect(manifest.deletes).toMatchObject({ marked: gone, heldBack: 0 })
        expect(manifest.warnings).toBeUndefined()
        expect((await states()).filter((state) => state.endsWith('gone'))).toHaveLength(gone)
      })

      test.each([
        [11, 12, undefined],
        [11, 100, undefined],
        [21, 200, undefined],
        [4, 12, 3],
        [1, 12, 0],
      ] as const)(
        'are not marked, %i of %i, where %s are allowed: the rest is published, with a warning',
        async (gone, all, maxDeletes) => {
          await publishFirst(many(all))
          const allowed = maxDeletes === undefined ? {} : { maxDeletes }
          const { manifest } = await publish('second', [...many(all - gone), { id: 'new' }], {
            facts: readOn(2),
            ...allowed,
          })
          expect(manifest.deletes).toMatchObject({ marked: 0, heldBack: gone })
          expect(manifest.deletes?.first).toEqual(
            many(all)
              .slice(all - gone)
              .slice(0, 10)
              .map(({ id }) => id),
          )
          expect(manifest.warnings).toEqual([
            expect.stringMatching(
              gone === 1 ? /^1 customer is no longer/ : new RegExp(`^${gone} customers are no longer`),
            ),
          ])
          expect(await states()).toHaveLength(all + 1)
          expect((await states()).filter((state) => state.endsWith('gone'))).toEqual([])
          expect(
            await ask(`select run, warnings from ${harness.schema}._exports order by run`),
          ).toMatchObject([{ warnings: '[]' }, { warnings: JSON.stringify(manifest.warnings) }])
        },
      )

      test('that were held back are marked when the run is published again with leave to', async () => {
        await publishFirst(many(12))
        await publish('second', [], { facts: readOn(2) })
        expect(await publish('second', [], { facts: readOn(2), maxDeletes: 11 })).toMatchObject({
          fresh: false,
          manifest: { deletes: { marked: 0, heldBack: 12 } },
        })
        const { fresh, manifest } = await publish('second', [], { facts: readOn(2), maxDeletes: 'all' })
        expect([fresh, manifest.deletes?.marked, manifest.warnings]).toEqual([false, 12, undefined])
        expect((await states()).filter((state) => state.endsWith('gone'))).toHaveLength(12)
        expect(await publish('second', [], { facts: readOn(2) })).toMatchObject({ manifest })
      })
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
  })
}
