import { expect, test } from 'vitest'
import { createRunNotes } from '../../../../core/runs/run-notes.ts'
import { SupersededError } from '../../../../core/state/errors.ts'
import { openState } from '../../../../core/state/open.ts'
import type { NewPlace } from './place.ts'

/** What all states promise about notes. */
export function describeNotes(newPlace: NewPlace): void {
  test('a note stays as it was first written, under its own subject', async () => {
    const state = await openState(await newPlace())
    const note = { name: 'a', body: { camelCase: [1, 'ä'] } }
    await state.notes.add({ subject: 'nightly', notes: [note] })
    await state.notes.add({ subject: 'nightly', notes: [{ ...note, body: 'later' }] })
    await state.notes.add({ subject: 'hourly', notes: [{ ...note, body: null }] })
    expect(await state.notes.of('nightly')).toEqual([{ name: 'a', body: { camelCase: [1, 'ä'] } }])
    expect(await state.notes.of('hourly')).toEqual([{ name: 'a', body: null }])
    expect(await state.notes.of('weekly')).toEqual([])
    await state.close()
  })

  test('of more notes than are to be kept, the newest stay', async () => {
    const state = await openState(await newPlace())
    for (let index = 10; index < 35; index += 1)
      await state.notes.add({
        subject: 'nightly',
        notes: [{ name: `${index}`, body: index }],
        keep: 20,
      })
    const names = (await state.notes.of('nightly')).map(({ name }) => name)
    expect(names).toEqual(Array.from({ length: 20 }, (_, index) => `${index + 15}`))
    await state.close()
  })

  test('a later attempt replaces the notes of a run, and an earlier one that wakes replaces none of them', async () => {
    const state = await openState(await newPlace())
    const { notes } = state
    const write = (attempt: number, written: object) =>
      notes.put({ subject: 'run r', attempt, notes: { ...written } })
    await write(5, { plan: 'first' })
    await write(5, { plan: 'again', check: 1 })
    await write(7, { plan: 'later' })
    await expect(write(6, { audit: 'late', plan: 'late' })).rejects.toThrow(SupersededError)
    expect(await notes.of('run r')).toEqual([
      { name: 'check', body: 1 },
      { name: 'plan', body: 'later' },
    ])
    await state.close()
  })

  test('a note that was removed is not brought back by an earlier attempt', async () => {
    const state = await openState(await newPlace())
    const at = (attempt: number) => createRunNotes({ notes: state.notes, attempt })
    await at(1).write('r', { ended: 'stopped', plan: 1 })
    await at(3).write('r', { ended: null })
    await expect(at(2).write('r', { ended: 'late' })).rejects.toThrow(SupersededError)
    expect(await at(4).read('r')).toEqual({ plan: 1, decisions: [] })
    await state.close()
  })

  test('a decision on a row is recorded once however often its step is repeated, and knows how it first found the row', async () => {
    const state = await openState(await newPlace())
    const notes = createRunNotes(state)
    const approval = { at: '2026-11-26T08:00:00Z', about: 'approval', by: 'Ana', why: 'it is right' } as const
    const row = { ...approval, about: 'row', row: 3, absent: true } as const
    await notes.addDecisions('r', [approval])
    for (const at of ['2026-11-26T09:00:00Z', '2026-11-26T10:00:00Z'])
      await notes.addDecisions('r', [{ ...row, at }])
    expect((await notes.read('r')).decisions).toEqual([approval, { ...row, at: '2026-11-26T09:00:00Z' }])
    const found = { row: 3, claims: 1, closedAt: 5 }
    for (const claims of [1, 2])
      expect([...(await notes.addFound('r', { id: 'u', rows: [{ ...found, claims }] }))]).toEqual([
        [3, found],
      ])
    expect([...(await notes.addFound('r', { id: 'v', rows: [{ ...found, claims: 2 }] }))]).toEqual([
      [3, { ...found, claims: 2 }],
    ])
    await state.close()
  })
}
