import { describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { until } from '../export/world.ts'
import {
  begin,
  breakSome,
  idsOf,
  quick,
  type RecoveryHandle,
  resume,
  resumesAsked,
  resumesDone,
  statusOf,
} from './world.ts'

const person = { by: 'Ana', why: 'the biller works again' }

/** Two incidents at once: what the gateway broke can be fixed, what the biller broke falls back. */
async function beginTwo() {
  const shop = await begin({ broken: 15 })
  const bad = breakSome(shop.world, { ids: idsOf(shop.world).slice(20, 50), reason: 'biller_issue' })
  const fallBack = (more: object = {}) =>
    shop.world.sandbox.control.setFaults({
      faults: [{ kind: 'fallBack', on: resume, ids: bad, ...more }],
    })
  fallBack()
  const resumed = () => resumesAsked(shop.world).filter((id) => bad.includes(id))
  return { ...shop, bad, resumed, fallBack }
}

test(
  'the canary of each reason is awaited by the execution that continues the run, which skips a reason of which all failed, and no other, and asks nothing again',
  { tags: ['long'] },
  async () => {
    const { client, world, ids, resumed, start } = await beginTwo()
    const input = { ...quick, canary: 4, approval: true, verifyAfter: '4s', eventsPerExecution: 50 }
    const run = await start(input)
    await until(async () => (await statusOf(run)).waitingFor !== undefined)
    await run.executeUpdate('approve', { args: [person] })
    await until(() => resumesAsked(world).length === 8)
    const latest = client.workflow.getHandle(run.workflowId) as RecoveryHandle
    for (let rate = 101; (await latest.describe()).runId === run.firstExecutionRunId; rate += 1)
      await latest.executeUpdate('setLimits', { args: [{ requestsPerSecond: rate }] })
    const { staged, waitingFor } = await statusOf(latest)
    expect({ canary: staged?.canary.length, waitingFor }).toEqual({ canary: 8, waitingFor: undefined })
    expect(resumesAsked(world)).toHaveLength(8)
    expect((await latest.result()).byReason).toEqual({
      gateway_issue: { recovered: 15 },
      biller_issue: { fellBack: 4, notTried: 26 },
    })
    expect(resumed()).toHaveLength(4)
    expect(resumesAsked(world)).toHaveLength(4 + ids.length)
  },
)

describe('the breaker of each reason', () => {
  const closing = { ...quick, canary: 0, maxFailureShare: 0.5, concurrency: 1, firstWait: '1h' } as const

  test(
    'closes when a trial lasts, and what had opened it is tried again within its attempts only',
    { tags: ['long'] },
    async () => {
      const { bad, resumed, start, fallBack } = await beginTwo()
      fallBack({ to: 12 })
      const input = { ...closing, firstWait: '200ms', breakerWaits: ['300ms', '300ms', '5s'] }
      const first = await (await start({ ...input, attempts: 1 })).result()
      expect(first.byReason).toEqual({
        gateway_issue: { recovered: 15 },
        biller_issue: { recovered: 18, attemptsUsedUp: 12 },
      })
      expect(resumed()).toHaveLength(bad.length)
      const later = await (await start({ ...input, attempts: 2 })).result()
      expect(later.byReason).toEqual({ biller_issue: { recovered: 12 } })
      expect(resumed()).toHaveLength(bad.length + 12)
    },
  )

  test('is shown by status and in Current Details while it is open, with its next trial', async () => {
    const { world, start } = await beginTwo()
    const run = await start({ ...closing, breakerWaits: ['1h', '2h'] })
    await until(async () => ((await statusOf(run)).openBreakers ?? []).length > 0)
    const { stdout } = await callCommand(world, ['run', 'show', run.workflowId])
    expect(stdout).toMatch(
      /The breaker is open: \d+ of the last \d+ biller_issue resumes fell back; next trial at \S+ \S+ \S+, the first of 2\./,
    )
    const { currentDetails } = await run.query<{ currentDetails: string }>('__temporal_workflow_metadata')
    expect(currentDetails).toMatch(/biller_issue resumes fell back; next trial at .* UTC, the first of 2/)
    await run.terminate()
  })

  test('waits for an attending person, says why and what each button does, and continues', async () => {
    const { resumed, start, fallBack } = await beginTwo()
    const run = await start({
      ...closing,
      attempts: 1,
      firstWait: '10ms',
      attended: true,
      breakerWaits: ['50ms'],
    })
    await until(async () => (await statusOf(run)).waitingFor?.question === 'breaker')
    const { currentDetails } = await run.query<{ currentDetails: string }>('__temporal_workflow_metadata')
    expect(currentDetails).toContain('Too many resumes failed')
    expect(currentDetails).toMatch(/To approve: .*`approve`.*To end it: .*`stop`/s)
    fallBack({ to: 0 })
    const before = resumed().length
    await run.executeUpdate('approve', { args: [person] })
    const { biller_issue: biller = {} } = (await run.result()).byReason
    expect(biller).toEqual({ recovered: 30 - before, attemptsUsedUp: before })
    expect(resumed()).toHaveLength(30)
  })
})

describe('the bounds of a run', () => {
  test('limit it to a number of subscriptions, the longest broken first; the same input continues with the others', async () => {
    const { world, ids, start } = await begin({ broken: 12 })
    const old = breakSome(world, {
      ids: ids.slice(7),
      reason: 'gateway_issue',
      since: '2026-01-01T00:00:00Z',
    })
    const input = { ...quick, maxChanges: 5 }
    const first = await (await start(input)).result()
    expect(resumesDone(world).toSorted()).toEqual(old.toSorted())
    expect(first).toMatchObject({ counts: { done: 5, notTried: 7 }, continueWith: input })
    expect(first.summary).toContain('7 not tried')
    const second = await (await start(input)).result()
    expect(second.counts).toMatchObject({ done: 5, notTried: 2 })
    expect(await (await start(input)).result()).toMatchObject({ verdict: 'proven', counts: { done: 2 } })
  })

  test('can be lowered while it runs', { tags: ['long'] }, async () => {
    const { world, start } = await begin({ broken: 40, sandbox: { faults: [{ kind: 'latency', ms: 60 }] } })
    const run = await start({ ...quick, concurrency: 1, canary: 0 })
    await until(() => resumesAsked(world).length >= 3)
    const raise = run.executeUpdate('setLimits', { args: [{ maxChanges: 1_000, ...person }] })
    await expect(raise).rejects.toMatchObject({
      cause: { message: expect.stringContaining("maxChanges can only be lowered from the run's 500") },
    })
    await run.executeUpdate('setLimits', { args: [{ maxChanges: 30, ...person }] })
    const result = await run.result()
    expect(result.counts).toMatchObject({ done: 30, notTried: 10 })
    expect(resumesDone(world)).toHaveLength(30)
  })
})
