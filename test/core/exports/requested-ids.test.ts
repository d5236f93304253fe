import { expect, test } from 'vitest'
import { loadPlan, savePlan } from '../../../core/exports/plan.ts'
import { toRequestedIds } from '../../../core/exports/requested-ids.ts'
import { createPlan } from '../../system/export/plan.ts'
import { newMachine, newStore } from './machine.ts'

test('an id that is given more than once is requested once, in its first place, and a person is told', async () => {
  const source = { ids: () => ['2', '1', '2', '3', '1'], empty: 2 }
  expect(await toRequestedIds(source)).toEqual({
    ids: ['2', '1', '3'],
    notes: ['2 ids were given more than once; each is requested once.', '2 rows without an id were skipped.'],
  })
})

test.each(['alone', 'of several'])(
  'a worker %s reads the ids of the attempt that opened the run first, whatever a later one has found in the file',
  async (which) => {
    const store = which === 'alone' ? undefined : await newStore()
    const first = await newMachine(store)
    const other = store === undefined ? first : await newMachine(store)
    const open = async (machine: typeof first, ids: string[]) => {
      const requested = await toRequestedIds({ ids: () => ids, empty: 0 })
      return await savePlan({ ...machine, plan: { ...createPlan({ run: 'r' }), requested } })
    }
    const planned = await open(first, ['1', '2'])
    expect(await open(other, ['1', '3'])).toEqual(planned)
    for (const machine of [first, other])
      expect((await loadPlan({ ...machine, run: 'r' }))?.requested?.ids).toEqual(['1', '2'])
  },
)
