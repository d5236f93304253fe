import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { defaultLimits } from '../../../core/changes/send/sending.ts'
import { copies, refusedFrom, retentionRows, startEngine, startSandbox } from './engine.ts'

const kind = changeKinds['create-retention']
const settleMs = 20

const refused = (rows: ReturnType<typeof retentionRows>, breakerKey: string) =>
  refusedFrom(1, rows).map((row) => ({ ...row, breakerKey }))

test('a canary whose breaker is open waits for its trials, and gives up after the last, while others are staged', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox(), settleMs })
  const bad = refused(retentionRows(20), 'biller_issue')
  const good = retentionRows(25)
    .slice(20)
    .map((row) => ({ ...row, breakerKey: 'gateway_issue' }))
  await engine.stage([...bad, ...good])
  const rows = [...bad.map(({ row }) => row), 21]
  const { breakers, ...step } = await engine.sendSegment({ rows, breakerWaitsMs: [60_000, 20, 20] })
  expect(step).toMatchObject({ ended: 'breaker', counts: { rejected: 10, done: 1 } })
  const waitMs = (step.nextAt ?? 0) - (step.endedAt ?? 0)
  expect(waitMs).toBeGreaterThan(30_000)
  expect(waitMs).toBeLessThanOrEqual(60_000)
  const last = await engine.sendSegment({ rows, breakers, breakerWaitsMs: [20, 20, 20] })
  expect(last).toMatchObject({ ended: 'breaker', givenUp: ['biller_issue'], counts: { rejected: 13 } })
  expect(last).not.toHaveProperty('nextAt')
})

test('a breaker that has given up is the end, although another one is open that has nothing left to try', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox(), settleMs })
  const [first, others] = [retentionRows(10), retentionRows(30).slice(10)]
  await engine.stage([...refused(first, 'biller_issue'), ...refused(others, 'gateway_issue')])
  const step = await engine.sendSegment({ breakerWaitsMs: [20, 20, 20] })
  expect(step).toMatchObject({ ended: 'breaker', givenUp: ['gateway_issue'], counts: { rejected: 23 } })
  expect(step).not.toHaveProperty('nextAt')
})

test('a change that the service turned away does not count for maxChanges, and is sent again', async () => {
  const turnAway = { kind: 'error', status: 429, on: 'POST /retentions/', requests: [1] } as const
  const sandbox = await startSandbox({ faults: [turnAway] })
  const engine = await startEngine({ kind, sandbox, settleMs })
  await engine.stage(retentionRows(4))
  const step = await engine.sendSegment({ limits: { ...defaultLimits, concurrency: 4, maxChanges: 2 } })
  expect(step).toMatchObject({ ended: 'maxChanges', counts: { done: 2, staged: 2 } })
  expect(copies(sandbox, 'retentions', 'number').size).toBe(2)
})
