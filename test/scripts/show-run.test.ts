import { expect, test } from 'vitest'
import { observeChanges } from '../../scripts/runs/show-run.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'

test('a bar counts what was sent apart from what needs a person and never was', async () => {
  const handle = {
    describe: async () => ({ raw: {} }),
    query: async () => ({ counts: { unknown: 1, parked: 1 } }),
  } as unknown as Parameters<typeof observeChanges<WriteProgress>>[0]['handle']
  const observe = observeChanges({
    handle,
    unit: 'subscriptions',
    nameOf: () => 'recovery',
    onQuestion: async () => {},
  })
  const { bars } = await observe()
  expect(bars).toMatchObject([{ done: 1, total: 2, note: '0 of 1 sent are checked, 1 parked' }])
})
