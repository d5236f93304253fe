import { expect, test } from 'vitest'
import { toRequestedIds } from '../../../core/exports/requested-ids.ts'

test('an id that is given more than once is requested once, in its first place, and a person is told', async () => {
  const source = { ids: () => ['2', '1', '2', '3', '1'], empty: 2 }
  expect(await toRequestedIds(source)).toEqual({
    ids: ['2', '1', '3'],
    notes: ['2 ids were given more than once; each is requested once.', '2 rows without an id were skipped.'],
  })
})
