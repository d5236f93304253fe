import { expect, test } from 'vitest'
import { verdictOf } from '../../core/changes/verdict.ts'
import { needsPerson } from '../../workflows/export-run.ts'
import { needsPerson as importNeedsPerson } from '../../workflows/write-run/write-run.ts'
import { noCounts } from '../../core/changes/report.ts'

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

const resolved = { resolved: 1, dropped: 2 }

test.each([
  ['all is done', {}, {}, false],
  ['people have resolved what was in doubt', {}, resolved, false],
  ['one row is still parked', { parked: 1 }, resolved, true],
  ['another row is done twice', {}, { ...resolved, doubled: 1 }, true],
  ['another row is not sent', { staged: 1 }, resolved, true],
  ['a row is rejected', { rejected: 1 }, {}, true],
])('an import of which %s: whether a person has something to do', (_, some, outcomes, needs) => {
  const summary = { counts: { ...noCounts, ...some }, outcomes, doneWithoutId: 0, doneResolved: 0 }
  const proof = verdictOf({ kind: 'create-addon', summary })
  expect(importNeedsPerson({ ...proof, counts: summary.counts })).toBe(needs)
})
