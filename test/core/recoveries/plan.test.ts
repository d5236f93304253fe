import { expect, test } from 'vitest'
import { parseRecoveryInput, type RecoveryInput, type RecoveryPlan } from '../../../core/recoveries/input.ts'
import { toRecoveryPlan } from '../../../core/recoveries/open.ts'

const worker = {
  run: 'recovery-1',
  execution: { workflowId: 'recovery-1', runId: 'first' },
  startedAt: '2026-11-20T00:00:00.000Z',
  identity: { workspace: 'acc_1', baseUrl: 'http://127.0.0.1:1', mode: 'live', store: 's' },
  settleMs: 60_000,
} as const

test.each<[RecoveryInput, Partial<RecoveryPlan>]>([
  [{ approval: false }, { attended: false }],
  [{ approval: false, attended: true }, { attended: true }],
  // Whoever approves it can answer its breaker, too.
  [{ approval: true }, { attended: true }],
  [{}, { verifyAfter: 60, settleMs: 60_000 }],
  [{ verifyAfter: '1s' }, { verifyAfter: 1, settleMs: 60_000 }],
  [{ verifyAfter: '2m' }, { verifyAfter: 120, settleMs: 120_000 }],
  [{ reasons: ['gateway_issue', 'gateway_issue'] }, { reasons: ['gateway_issue'], named: true }],
])('the plan of a recovery of %j has %j', (input, plan) => {
  expect(toRecoveryPlan({ input: parseRecoveryInput(input), ...worker })).toMatchObject(plan)
})
