import { readFile } from 'node:fs/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RecoveryInput } from '../../../core/recoveries/input.ts'
import { reasonNames, triedReasons } from '../../../core/recoveries/reasons.ts'
import { asked, until } from '../export/world.ts'
import {
  begin,
  breakSome,
  idsOf,
  quick,
  recoveryCsv,
  resume,
  resumesAsked,
  resumesDone,
  startRecovery,
  stateOf,
  statusOf,
} from './world.ts'

describe('a recovery after an incident', () => {
  test('resumes what the gateway broke, and proves each by a look', async () => {
    const { world, ids, start } = await begin()
    const run = await start()
    const result = await run.result()
    expect(result).toMatchObject({
      run: run.workflowId,
      summary: '20 of 20 recovered; proven',
      verdict: 'proven',
      counts: { done: 20, parked: 0, unknown: 0, notTried: 0 },
      outcomes: { recovered: 20 },
      byReason: { gateway_issue: { recovered: 20 } },
    })
    expect(ids.map((id) => stateOf(world, id).status)).toEqual(ids.map(() => 'active'))
    expect(resumesDone(world).toSorted()).toEqual(ids.toSorted())
    const { next_billing: billing, customer } = stateOf(world, ids[0] ?? '')
    expect((await recoveryCsv(result)).get(ids[0] ?? '')).toMatchObject({
      customer,
      reason: 'gateway_issue',
      since: '2026-11-20T10:00:00.123456-03:00',
      attempts: '1',
      outcome: 'recovered',
      new_status: 'active',
      next_billing_before: billing,
      next_billing_after: billing,
      resumed_at: expect.stringMatching(/^2\d{3}-/),
    })
    const report = JSON.parse(await readFile(result.files.report ?? '', 'utf8')) as object
    expect(report).toMatchObject({ verdict: 'proven', snapshot: { proven: true, candidates: 20 } })
    const page = await readFile((result.files.report ?? '').replace(/json$/, 'html'), 'utf8')
    expect(page).toContain('proven</span>')
    expect(page).toMatch(/aria-label="20 recovered"/)
    expect(page).not.toContain(ids[0])
  })

  test('resumes the reasons that a resume can fix, and says what a person must do about the others', async () => {
    const { world, client } = await begin({ broken: 0 })
    const all = idsOf(world)
    for (const [at, reason] of reasonNames.entries())
      breakSome(world, { ids: all.slice(at * 4, at * 4 + 4), reason })
    const run = await startRecovery({ client, world, input: quick })
    const result = await run.result()
    expect(result.counts).toMatchObject({ done: 12, parked: 12 })
    expect(result).toMatchObject({
      verdict: 'proven',
      reasons: [],
      reported: 12,
      summary: '12 of 12 recovered; proven; 12 others need a person',
    })
    for (const reason of reasonNames)
      expect(result.byReason[reason]).toEqual(
        triedReasons.includes(reason) ? { recovered: 4 } : { needsPerson: 4 },
      )
    expect(result.needsPerson.join('\n')).toMatch(/4 reference_expired: .*new one/)
    // One that is named is tried, and then nothing else is.
    const named = await startRecovery({ client, world, input: { ...quick, reasons: ['reference_expired'] } })
    const { counts, byReason } = await named.result()
    expect(counts).toMatchObject({ done: 4, parked: 0 })
    expect(byReason).toEqual({ reference_expired: { recovered: 4 } })
  })

  test('sends next_billing with each resume where it is given, and else leaves the field out', async () => {
    const { world, ids, start } = await begin({ broken: 2 })
    await (await start({ ...quick, customers: [stateOf(world, ids[0] ?? '').customer] })).result()
    const nextBilling = '2027-03-01'
    breakSome(world, { ids, reason: 'gateway_issue' })
    const result = await (await start({ ...quick, nextBilling })).result()
    const bodies = world.sandbox.control
      .requests()
      .flatMap(({ method, body }) => (method === 'POST' ? [body] : []))
    expect(bodies.slice(-2)).toEqual([
      `{"next_billing":"${nextBilling}"}`,
      `{"next_billing":"${nextBilling}"}`,
    ])
    expect(bodies[0]).toBe('{}')
    const row = (await recoveryCsv(result)).get(ids[1] ?? '')
    expect(row?.['next_billing_after']).toBe(nextBilling)
    expect(row?.['next_billing_before']).not.toBe(nextBilling)
  })

  test('sends no next_billing that has passed while the run waited, and says so', async () => {
    const { world, ids, start } = await begin({ broken: 6 })
    onTestFinished(() => void vi.useRealTimers())
    const nextBilling = new Date().toISOString().slice(0, 10)
    const run = await start({ ...quick, approval: true, nextBilling })
    await until(async () => (await statusOf(run)).waitingFor !== undefined)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 48 * 3_600_000 })
    const before = asked(world)
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'two days later' }] })
    const result = await run.result()
    const says = `nextBilling ${nextBilling} has passed; start again with a later one`
    expect(result).toMatchObject({
      verdict: 'unproven',
      summary: `0 of 6 recovered; unproven: 6 not tried; ${says}`,
      counts: { notTried: 6, done: 0 },
    })
    expect((await recoveryCsv(result)).get(ids[0] ?? '')?.['message']).toBe(says)
    expect(asked(world), 'nothing is looked at in vain').toBe(before)
  })

  test('resumes only what was asked for by customer and by how long it has waited', async () => {
    const { world, ids, client } = await begin({ broken: 12 })
    const young = idsOf(world).slice(20, 24)
    breakSome(world, {
      ids: young,
      reason: 'gateway_issue',
      since: new Date(Date.now() - 60_000).toISOString(),
    })
    const excluded = stateOf(world, ids[0] ?? '').customer
    // Of another customer: else the customer alone would leave it out.
    const skipped = ids.find((id) => stateOf(world, id).customer !== excluded) ?? ''
    const input = { ...quick, olderThan: '2h', skip: [excluded, skipped] } satisfies RecoveryInput
    await (await startRecovery({ client, world, input })).result()
    const expected = ids.filter((id) => stateOf(world, id).customer !== excluded && id !== skipped)
    expect(resumesDone(world).toSorted()).toEqual(expected.toSorted())
    const one = stateOf(world, young[0] ?? '').customer
    await (await startRecovery({ client, world, input: { ...quick, customers: [one] } })).result()
    expect(stateOf(world, young[0] ?? '').status).toBe('active')
    expect(
      young.filter((id) => stateOf(world, id).customer !== one).map((id) => stateOf(world, id).status),
    ).toEqual(young.filter((id) => stateOf(world, id).customer !== one).map(() => 'needs_attention'))
  })

  test('finds one without lines by its customer', async () => {
    const { world, ids, start } = await begin({ broken: 3 })
    breakSome(world, { ids: ids.slice(0, 1), reason: 'gateway_issue', fields: { lines: [] } })
    expect(await (await start()).result()).toMatchObject({ verdict: 'proven', counts: { done: 3 } })
  })

  test('says in a dry run what it would do, row by row, and resumes nothing', async () => {
    const { world, ids, start } = await begin({ broken: 8 })
    breakSome(world, { ids: idsOf(world).slice(30, 32), reason: 'without_reference' })
    const result = await (await start({ ...quick, dryRun: true, maxChanges: 5 })).result()
    expect(result).toMatchObject({
      verdict: 'dryRun',
      summary: 'dry run: 5 would be resumed; 2 need a person; 3 are beyond maxChanges',
      preview: { toResume: 5, notResumed: { needsPerson: 2, notTried: 3 } },
    })
    const rows = await recoveryCsv(result)
    expect(rows.size).toBe(10)
    expect(ids.filter((id) => rows.get(id)?.['outcome'] === 'would be resumed')).toHaveLength(5)
    expect(resumesAsked(world)).toEqual([])
  })

  test('acts on test data only, in test mode', async () => {
    const { world, client } = await begin({ env: { BILLING_TEST_MODE: 'true' } })
    const [id = ''] = world.sandbox.control.ids({ resource: 'subscriptions', mode: 'test' }).map(String)
    const fields = {
      status: 'needs_attention',
      needs_attention: '2026-11-20T10:00:00Z',
      needs_attention_reason: 'biller_issue',
    }
    world.sandbox.control.update({ resource: 'subscriptions', mode: 'test', id, fields })
    const run = await startRecovery({
      client,
      world: { ...world, taskQueue: `${world.taskQueue}-test` },
      input: quick,
    })
    const result = await run.result()
    expect((await recoveryCsv(result)).get(id)).toMatchObject({ outcome: 'recovered' })
    expect(
      world.sandbox.control
        .effects()
        .filter(({ effect }) => effect === 'resume')
        .map(({ mode }) => mode),
    ).toEqual(Array.from({ length: result.counts.done }, () => 'test'))
  })
})

describe('the outcome of one subscription', () => {
  test('that fell back for a reason that needs a person is not resumed again', async () => {
    const { world, ids, start } = await begin({ broken: 3 })
    const [one = ''] = ids
    world.sandbox.control.setFaults({
      faults: [{ kind: 'fallBack', on: resume, ids: [one], reason: 'without_reference' }],
    })
    const result = await (await start({ ...quick, canary: 0 })).result()
    expect(resumesAsked(world).filter((id) => id === one)).toHaveLength(1)
    expect((await recoveryCsv(result)).get(one)).toMatchObject({
      outcome: 'needs a person',
      new_reason: 'without_reference',
      message: expect.stringContaining('its reason is without_reference now'),
    })
    // It was to be resumed, so it counts.
    expect(result).toMatchObject({ verdict: 'unproven', reported: 0, counts: { parked: 1 } })
  })

  test('is checked just before: a subscription that changed since the snapshot is not resumed', async () => {
    const { world, ids, start } = await begin({ broken: 9 })
    const [fine = '', gone = '', paused = '', other = '', deleted = '', same = '', ...changed] = ids
    const [biller = '', young = '', old = ''] = changed
    const run = await start({ ...quick, approval: true, olderThan: '1h' })
    await until(async () => (await statusOf(run)).waitingFor !== undefined)
    const set = (id: string, fields: Record<string, unknown>) =>
      world.sandbox.control.update({ resource: 'subscriptions', id, fields })
    set(fine, { status: 'active', needs_attention: null, needs_attention_reason: null })
    set(gone, { status: 'cancelled', needs_attention: null, needs_attention_reason: null })
    set(paused, { status: 'paused', needs_attention: null, needs_attention_reason: null })
    set(other, { needs_attention_reason: 'reference_expired' })
    set(biller, { needs_attention_reason: 'biller_issue' })
    set(young, { needs_attention: new Date().toISOString() })
    set(old, { needs_attention: '2026-11-20T11:00:00Z' })
    world.sandbox.control.delete({ resource: 'subscriptions', id: deleted })
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'as agreed' }] })
    const result = await run.result()
    expect(resumesAsked(world).toSorted()).toEqual([same, old].toSorted())
    const rows = await recoveryCsv(result)
    expect(ids.map((id) => rows.get(id)?.['outcome'])).toEqual([
      'already fine',
      'gone',
      'needs a person',
      'needs a person',
      'not found',
      'recovered',
      'not tried',
      'not tried',
      'recovered',
    ])
    expect(result).toMatchObject({
      verdict: 'unproven',
      reported: 0,
      counts: { done: 3, skipped: 1, parked: 3, notTried: 2 },
    })
    // Each reason has a canary and a breaker of its own: it is for a run that chooses it for this one.
    expect(rows.get(biller)?.['message']).toMatch(/was gateway_issue .* is biller_issue now: the next run/)
    expect(rows.get(young)?.['message']).toMatch(/needs attention again, since 2.*olderThan/)
    // With the same input, as the report says; the one that fell a moment ago has to wait.
    const next = await (await start({ ...quick, olderThan: '1h' })).result()
    expect(next.byReason).toEqual({
      biller_issue: { recovered: 1 },
      reference_expired: { needsPerson: 1 },
    })
  })
})
