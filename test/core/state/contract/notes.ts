import { expect, test } from 'vitest'
import { openState } from '../../../../core/state/open.ts'
import type { NewPlace } from './place.ts'

/** What all states promise about notes. */
export function describeNotes(newPlace: NewPlace): void {
  test('a note stays as it was first written, under its own subject', async () => {
    const state = await openState(await newPlace())
    const note = { subject: 'nightly', name: 'a', body: { camelCase: [1, 'ä'] } }
    await state.notes.add(note)
    await state.notes.add({ ...note, body: 'later' })
    await state.notes.add({ ...note, subject: 'hourly', body: null })
    expect(await state.notes.of('nightly')).toEqual([{ name: 'a', body: { camelCase: [1, 'ä'] } }])
    expect(await state.notes.of('hourly')).toEqual([{ name: 'a', body: null }])
    expect(await state.notes.of('weekly')).toEqual([])
    await state.close()
  })

  test('of more notes than are to be kept, the newest stay', async () => {
    const state = await openState(await newPlace())
    for (let index = 10; index < 35; index += 1)
      await state.notes.add({ subject: 'nightly', name: `${index}`, body: index, keep: 20 })
    const names = (await state.notes.of('nightly')).map(({ name }) => name)
    expect(names).toEqual(Array.from({ length: 20 }, (_, index) => `${index + 15}`))
    await state.close()
  })
}
