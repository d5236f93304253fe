import { describe, expect, test } from 'vitest'
import type { Publication } from '../../../core/destinations/destination.ts'
import type { ReadFacts } from '../../../core/destinations/manifest.ts'
import { created, day, readOn, useWarehouse } from '../../core/destinations/use-warehouse.ts'
import { usePostgres } from './use-postgres.ts'

const { harness, workplace, publish, publishFirst, ask, customers, states, many } =
  useWarehouse(usePostgres())

describe('records that are gone', () => {
  test.each([
    ['unproven', { facts: readOn(2, { verdict: 'unproven', reasons: ['x'] }) }],
    ['filtered', { facts: readOn(2), filters: { status: 'active' } }],
    ['capped', { facts: readOn(2), capped: true }],
    ['incremental', { facts: readOn(2), mode: 'incremental' }],
    ['complete for nothing', { facts: readOn(2, { completeThrough: null }) }],
  ] as [string, Partial<Publication>][])('are not marked after a read that is %s', async (_title, more) => {
    await publishFirst([{ id: 'a' }, { id: 'b' }])
    const { manifest } = await publish('second', [{ id: 'a' }], more)
    expect(manifest.deletes).toBeUndefined()
    expect(await states()).toEqual(['a there', 'b there'])
  })

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
    ['can not see all that changed meanwhile', { statusCheck: 'unseen' }, [], /than one page of a status/],
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
    await publish('first', [{ id: 'a', created: day(3) }, { id: 'b', created: 'yesterday' }, { id: 'c' }], {
      facts: readOn(4),
    })
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
      expect(await ask(`select run, warnings from ${harness.schema}._exports order by run`)).toMatchObject([
        { warnings: '[]' },
        { warnings: JSON.stringify(manifest.warnings) },
      ])
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

  test('are marked late with all that else was warned of at the publication', async () => {
    await publishFirst([...many(12), { id: 'newer', updated: day(1) }])
    const read = [{ id: 'newer', nickname: 'a new field' }]
    const newFields = ['customers.nickname']
    const second = { facts: readOn(2, { newFields, unknownFields: { 'customers.nickname': 1 } }) }
    const held = await publish('second', read, second)
    expect(held.manifest.warnings).toEqual([
      expect.stringMatching(/new fields/),
      expect.stringMatching(/^Kept as before.*: 1 customer\./),
      expect.stringMatching(/^12 customers are no longer/),
    ])
    const { manifest } = await publish('second', read, { ...second, maxDeletes: 'all' })
    expect([manifest.deletes?.marked, manifest.warnings]).toEqual([12, held.manifest.warnings!.slice(0, 2)])
  })
})
