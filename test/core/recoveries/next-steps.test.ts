import { expect, test } from 'vitest'
import { type RecoveryReport, recoveryNextSteps } from '../../../core/recoveries/view.ts'

const report = (fields: Partial<RecoveryReport>) =>
  ({
    run: 'recover-1',
    verdict: 'proven',
    ended: { how: 'finished', at: '' },
    counts: { staged: 0, done: 1, rejected: 0, unknown: 0, parked: 0, skipped: 0, notTried: 0 },
    snapshot: null,
    failedCanaries: [],
    ...fields,
  }) as RecoveryReport

const asked = { reasons: ['gateway_issue'], maxChanges: 100, olderThan: '2h', approval: false }

test('a recovery that left some over leads to the command that continues it', () => {
  const counts = { ...report({}).counts, notTried: 7 }
  const steps = recoveryNextSteps(report({ verdict: 'unproven', counts, continueWith: asked }), asked)
  expect(steps).toEqual([
    {
      text: '7 were not tried; to continue',
      command: 'npx connector recover --reason gateway_issue --older-than 2h --max-changes 100',
    },
  ])
  const one = report({ verdict: 'unproven', counts: { ...counts, notTried: 1 }, continueWith: asked })
  expect(recoveryNextSteps(one, asked)).toMatchObject([{ text: '1 was not tried; to continue' }])
})

test('an unproven recovery suggests another one only if that can help', () => {
  const counts = { ...report({}).counts, parked: 3 }
  const steps = (fields: Partial<RecoveryReport>) =>
    recoveryNextSteps(report({ verdict: 'unproven', counts, ...fields }), {})
  expect(steps({})).toEqual([])
  expect(steps({ counts: { ...counts, unknown: 2 } })).toEqual([
    { text: 'another recovery looks up the 2 unknown first', command: 'npx connector recover' },
  ])
  const again = [{ text: 'to try again', command: 'npx connector recover' }]
  expect(steps({ snapshot: { proven: false } as RecoveryReport['snapshot'] })).toEqual(again)
  expect(steps({ ended: { how: 'failed', at: '' } })).toEqual(again)
})

test('a dry run leads to the recovery itself, an active run to watch, a proven one to nothing', () => {
  expect(recoveryNextSteps(report({ verdict: 'dryRun' }), { dryRun: true })).toEqual([
    { text: 'to resume them', command: 'npx connector recover' },
  ])
  expect(recoveryNextSteps({ ...report({}), ended: undefined as never }, {})).toMatchObject([
    { command: 'npx connector run watch recover-1' },
  ])
  expect(recoveryNextSteps(report({}), asked)).toEqual([])
})

test('after a failed canary no step is the command that would resume the same ones first', () => {
  const counts = { ...report({}).counts, rejected: 5, notTried: 22 }
  const failedCanaries = [{ reason: 'gateway_issue', notTried: 15 }]
  const steps = (fields: Partial<RecoveryReport>) =>
    recoveryNextSteps(report({ verdict: 'unproven', counts, failedCanaries, ...fields }), {})
  const cause = {
    text: 'find out in the service why all that went first for gateway_issue failed, then recover the other 15',
  }
  expect(steps({})).toEqual([cause])
  expect(steps({ continueWith: { reasons: ['biller_issue'] } })).toEqual([
    cause,
    { text: '7 were not tried; to continue', command: 'npx connector recover --reason biller_issue' },
  ])
})
