import { expect, test } from 'vitest'
import type { Deletes } from '../../../core/destinations/manifest.ts'
import { exportNextSteps } from '../../../core/exports/next-steps.ts'
import { toPublished } from '../../../core/exports/report.ts'
import { toExportView } from '../../../core/exports/view.ts'
import { needsPerson } from '../../../workflows/export-run.ts'
import { sheetFor, toCsv } from '../../acceptance/example-exports.ts'
import { createPlan } from '../../system/export/plan.ts'

test.each([
  [
    'that are too many at once are for a person, who can allow them',
    {},
    ['run publish', '--max-deletes all'],
  ],
  [
    'that are in doubt are a notice, because nobody can allow them',
    { doubt: 'the service sent no time' },
    [],
  ],
])('deletes %s', (_, more, command) => {
  const deletes: Deletes = { marked: 0, heldBack: 12, first: ['a'], ...more }
  const warnings = ['12 plans were not seen.']
  const sheet = sheetFor(toCsv('plans', 60), { destination: 'duckdb', warnings, deletes })
  const published = toPublished('plans', sheet)
  const report = { summary: '', run: 'export-1', verdict: 'proven' as const, exports: [published] }
  const isForPerson = command.length > 0
  expect(needsPerson(report)).toBe(isForPerson)
  const { problems, notices } = toExportView(report)
  expect([problems, notices].map((shown) => shown?.length)).toEqual(isForPerson ? [1, 0] : [0, 1])
  const [step] = exportNextSteps({ plan: { ...createPlan(), run: 'export-1' }, exports: [published] })
  if (isForPerson) for (const words of command) expect(step?.command).toContain(words)
  else expect(step).toBeUndefined()
})
