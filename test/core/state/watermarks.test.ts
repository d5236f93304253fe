import { expect, test } from 'vitest'
import { differenceOf } from '../../../core/runs/identity.ts'
import { openState } from '../../../core/state/open.ts'
import { temporaryFolder } from './temporary-folder.ts'

const key = {
  workspace: 'acc_1',
  mode: 'live',
  resource: 'customers',
  filter: '',
  destination: 'csv',
} as const

test('a watermark moves forward, never back', async () => {
  const state = await openState({ folder: await temporaryFolder() })
  expect(await state.watermarks.get(key)).toBeUndefined()
  await state.watermarks.move({ key, to: 2_000, run: 'second' })
  await state.watermarks.move({ key, to: 1_000, run: 'first, published late' })
  expect(await state.watermarks.get(key)).toEqual({ at: 2_000, run: 'second' })
  await state.watermarks.move({ key, to: 3_000, run: 'third' })
  expect(await state.watermarks.get(key)).toEqual({ at: 3_000, run: 'third' })
  await state.close()
})

test('each workspace, mode, resource, filter and destination has its own', async () => {
  const state = await openState({ folder: await temporaryFolder() })
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

test('a run started elsewhere is refused with what differs', () => {
  const run = { workspace: 'acc_1', baseUrl: 'https://a.test', mode: 'live', store: 's1' } as const
  expect(differenceOf({ run, worker: { ...run } })).toBeUndefined()
  const sentence = differenceOf({ run, worker: { ...run, mode: 'test', store: 's2' } })
  expect(sentence).toContain('live mode, not test')
  expect(sentence).toContain('s1, not s2')
  expect(sentence).not.toContain('acc_1')
})
