import { expect, test } from 'vitest'
import { describeBreaker } from '../../../../core/runs/view/trouble.ts'

const nextTrialAt = Date.parse('2026-11-21T01:13:20Z')
const open = { key: 'gateway_issue', failed: 11, of: 20, trial: 1, trials: 3 }

test('an open breaker shows how many of its last changes failed, and its next trial among how many', () => {
  const text = (more: object) => describeBreaker({ ...open, ...more }, 'resumes fell back')
  expect(text({ nextTrialAt })).toBe(
    '11 of the last 20 gateway_issue resumes fell back; next trial at 2026-11-21 01:13:20 UTC, the first of 3',
  )
  expect(text({})).toMatch(/; a trial is under way, the first of 3$/)
  expect(text({ nextTrialAt, trial: 2 })).toMatch(/, the second of 3$/)
  expect(text({ trial: 4 })).toMatch(/resumes fell back; every trial failed$/)
})

test('a breaker of all changes has no name', () => {
  const ofAll = { key: '', failed: 10, of: 12, trial: 1, trials: 1, nextTrialAt }
  expect(describeBreaker(ofAll, 'rows failed')).toMatch(/^10 of the last 12 rows failed; next trial at /)
})
