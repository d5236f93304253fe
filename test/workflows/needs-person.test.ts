import { expect, test } from 'vitest'
import { needsPerson } from '../../workflows/export-run.ts'

const published = { resource: 'plans', destination: 'duckdb', verdict: 'proven', reasons: [], warnings: [] }

test.each([
  ['a proven export', { verdict: 'proven' }, false],
  ['an unproven one', { verdict: 'unproven' }, true],
  ['a failed one', { verdict: 'failed' }, true],
  ['one that a person stopped', { verdict: 'stopped' }, false],
  ['ids that do not exist', { missing: { count: 1 } }, true],
  [
    'a notice',
    { exports: [{ ...published, warnings: ['The service sends new fields.'], heldBack: 0 }] },
    false,
  ],
  ['deletes that are held back', { exports: [{ ...published, warnings: ['12 plans'], heldBack: 12 }] }, true],
])('%s: whether a person has something to do', (_, report, needs) => {
  expect(needsPerson({ verdict: 'proven', exports: [], ...report } as never)).toBe(needs)
})
