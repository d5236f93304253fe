import { expect, test } from 'vitest'
import { Breaker } from '../../../../core/changes/send/breaker.ts'
import { describeBreaker } from '../../../../core/runs/view/breaker.ts'

const at = Date.parse('2026-11-21T01:12:20Z')

test('an open breaker shows how many of its last changes failed, and its next trial among how many', () => {
  const failures = Array.from({ length: 19 }, (_, index) => index >= 9)
  const breaker = new Breaker({ maxFailureShare: () => 0.5, failures })
  breaker.start()
  breaker.record({ event: 'failure', at })
  const text = () => describeBreaker({ key: 'gateway_issue', ...breaker.account }, 'resumes fell back')
  expect(text()).toBe(
    '11 of the last 20 gateway_issue resumes fell back; next trial at 2026-11-21 01:13:20 UTC, the first of 3',
  )
  breaker.start()
  expect(text()).toMatch(/; a trial is under way, the first of 3$/)
  breaker.record({ event: 'failure', at: at + 60_000 })
  expect(text()).toMatch(/next trial at 2026-11-21 01:15:20 UTC, the second of 3$/)
  for (const trial of [2, 3]) {
    breaker.start()
    breaker.record({ event: 'failure', at: at + trial * 60_000 })
  }
  expect(text()).toMatch(/resumes fell back; every trial failed$/)
})

test('a breaker of all changes has no name', () => {
  const open = { key: '', failed: 10, of: 12, trial: 1, trials: 1, nextTrialAt: at }
  expect(describeBreaker(open, 'rows failed')).toMatch(/^10 of the last 12 rows failed; next trial at /)
})
