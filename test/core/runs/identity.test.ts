import { expect, test } from 'vitest'
import { differenceOf } from '../../../core/runs/identity.ts'

test('a run started elsewhere is refused with what differs', () => {
  const run = { workspace: 'acc_1', baseUrl: 'https://a.test', mode: 'live', store: 's1' } as const
  expect(differenceOf({ run, worker: { ...run } })).toBeUndefined()
  const sentence = differenceOf({ run, worker: { ...run, mode: 'test', store: 's2' } })
  expect(sentence).toContain('live mode, not test')
  expect(sentence).toContain('s1, not s2')
  expect(sentence).not.toContain('acc_1')
})
