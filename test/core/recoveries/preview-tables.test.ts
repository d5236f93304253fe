import { expect, test } from 'vitest'
import { noListValues } from '../../../core/recoveries/list-value.ts'
import { toPreviewTables } from '../../../core/recoveries/view.ts'

test('a preview counts those that need a person once, by reason, and apart from others that are not resumed', () => {
  const preview = {
    byReason: { gateway_issue: 3 },
    toResume: 3,
    byScheme: {},
    byNextBilling: {},
    today: '2026-12-01',
    needsPerson: { reference_expired: 2 },
    notResumed: { needsPerson: 2, coolingDown: 4 },
    listValue: noListValues(),
  } as never
  const tables = toPreviewTables(preview).map(({ title, rows }) => [title, rows])
  expect(tables).toContainEqual(['Needs a person, by reason', [['reference_expired', 2]]])
  expect(tables).toContainEqual(['Not resumed', [[expect.any(String), 4]]])
})
