import { expect, test } from 'vitest'
import { openState } from '../../../../core/state/open.ts'
import type { NewPlace } from './place.ts'

const key = {
  workspace: 'acc_1',
  mode: 'live',
  resource: 'customers',
  filter: '',
  destination: 'csv',
} as const

/** What all watermarks promise. */
export function describeWatermarks(newPlace: NewPlace): void {
  test('a watermark moves forward, never back', async () => {
    const state = await openState(await newPlace())
    expect(await state.watermarks.get(key)).toBeUndefined()
    await state.watermarks.move({ key, to: 2_000, run: 'second' })
    await state.watermarks.move({ key, to: 1_000, run: 'first, published late' })
    expect(await state.watermarks.get(key)).toEqual({ at: 2_000, run: 'second', seenClaims: 0 })
    // A read of the whole list, where nothing has changed since.
    await state.watermarks.move({ key, to: 2_000, run: 'whole', seenClaims: 7 })
    await state.watermarks.move({ key, to: 1_000, run: 'an older one, published late', seenClaims: 3 })
    expect(await state.watermarks.get(key)).toEqual({ at: 2_000, run: 'whole', seenClaims: 7 })
    // The newest record is gone.
    await state.watermarks.move({ key, to: 1_500, run: 'whole again', seenClaims: 9 })
    expect(await state.watermarks.get(key)).toEqual({ at: 2_000, run: 'whole again', seenClaims: 9 })
    await state.watermarks.move({ key, to: 3_000, run: 'third' })
    expect(await state.watermarks.get(key)).toEqual({ at: 3_000, run: 'third', seenClaims: 9 })
    await state.close()
  })

  test('each workspace, mode, resource, filter and destination has its own', async () => {
    const state = await openState(await newPlace())
    await state.watermarks.move({ key, to: 1, run: 'r' })
    const others = [
      { ...key, workspace: 'acc_2' },
      { ...key, mode: 'test' as const },
      { ...key, resource: 'plans' },
      { ...key, filter: 'status=active' },
      { ...key, destination: 'postgres' },
    ]
    for (const other of others) expect(await state.watermarks.get(other)).toBeUndefined()
    await state.close()
  })
}
