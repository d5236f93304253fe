import { expect, test } from 'vitest'
import { openState } from '../../../../core/state/open.ts'
import type { Publication } from '../../../../core/state/publications.ts'
import { publicationOf } from '../../exports/record-read.ts'
import type { NewPlace } from './place.ts'

/** What was published up to a moment by a run that was started at another. */
const upTo = (changesThrough: number | null, startedAt: number, more: Partial<Publication> = {}) =>
  publicationOf({ startedAt: new Date(startedAt).toISOString(), changesThrough, ...more })

/** What all states promise about publications. */
export function describePublications(newPlace: NewPlace): void {
  test('a publication is found again as it was, in the order in which runs were started', async () => {
    const state = await openState(await newPlace())
    const later = upTo(2, 2_000, {
      run: 'later',
      place: 'reports',
      filters: { status: 'active' },
      excluded: ['customers.email'],
      hashed: ['customers.tax_id'],
      hashedWith: 'key',
      unknownFields: ['customers.segment'],
      absentFields: [],
      manifest: 's3://bucket/exports/customers/later/manifest.json',
    })
    const first = upTo(null, 1_000, {
      run: 'first',
      testMode: true,
      mode: 'byId',
      capped: true,
      forExcel: true,
    })
    for (const one of [later, first]) await state.publications.add(one)
    expect(await state.publications.all()).toEqual([first, later])
    expect(await state.publications.all({ testMode: true })).toEqual([first])
    expect(await state.publications.all({ run: 'later' })).toEqual([later])
    await state.close()
  })

  test('a watermark moves forward, never back', async () => {
    const state = await openState(await newPlace())
    const mark = () => state.publications.watermark(publicationOf())
    const add = (...given: Parameters<typeof upTo>) => state.publications.add(upTo(...given))
    expect(await mark()).toBeUndefined()
    await add(2_000, 2, { run: 'second', seenClaims: 7 })
    await add(1_000, 1, { run: 'first, published late', seenClaims: 3 })
    expect(await mark()).toEqual({ at: 2_000, seenClaims: 7 })
    // The newest record is gone.
    await add(1_500, 3, { run: 'whole again', seenClaims: 9 })
    expect(await mark()).toEqual({ at: 2_000, seenClaims: 9 })
    await add(3_000, 4, { run: 'third', mode: 'incremental' })
    expect(await mark()).toEqual({ at: 3_000, seenClaims: 9 })
    // Published again, while nobody could ask the warehouse what it has.
    await add(null, 4, { run: 'third', mode: 'incremental' })
    expect(await mark()).toMatchObject({ at: 3_000 })
    await state.publications.forgetChanges({ resource: 'customers', destination: 'duckdb' })
    expect(await mark()).toBeUndefined()
    await state.close()
  })

  test.each<[string, Partial<Publication>]>([
    ['workspace', { workspace: 'acc_2' }],
    ['mode', { testMode: true }],
    ['resource', { resource: 'plans' }],
    ['filters', { filters: { status: 'active' } }],
    ['destination', { destination: 'postgres' }],
    ['folder or database', { location: '/elsewhere' }],
    ['service', { baseUrl: 'https://other' }],
    ['excluded columns', { excluded: ['customers.email'] }],
    ['hashed columns', { hashed: ['customers.email'] }],
    ['hash key', { hashedWith: 'other' }],
    ['form', { forExcel: true }],
  ])('each %s has a watermark of its own', async (_, other) => {
    const state = await openState(await newPlace())
    await state.publications.add(upTo(1, 1))
    expect(await state.publications.watermark(publicationOf(other))).toBeUndefined()
    expect(await state.publications.watermark(publicationOf())).toMatchObject({ at: 1 })
    await state.close()
  })
}
