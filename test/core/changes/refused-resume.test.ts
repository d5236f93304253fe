import { expect, test } from 'vitest'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { createResumeKind, resumeSubscription } from '../../../core/changes/kinds/resume-subscription.ts'
import { canaryResult, openCanary } from '../../../core/changes/send/canary.ts'
import type { Fault } from '../../../sandbox/faults.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { attempts, oneBroken, requestsOf, resumeRows, startEngine, startRun, startSandbox } from './engine.ts'

const post = 'POST /subscriptions/{id}/resume/'
const list = 'GET /subscriptions/'
const refusal = 'Only a subscription that needs attention can be resumed.'
const active = { status: 'active', needs_attention: null, needs_attention_reason: null }

/** Resumes of three subscriptions, before each of which the service itself changes the subscription. */
async function startRace({
  meanwhile,
  faults = [],
  kind = resumeSubscription,
  limits = {},
}: {
  meanwhile: (id: string) => object | 'delete'
  faults?: Fault[]
  kind?: ChangeKind
  limits?: { maxChanges?: number }
}) {
  const counts = { customers: 3, subscriptions: 6, plans: 1 }
  const sandbox = await startSandbox({ counts, faults })
  const { control } = sandbox
  const ids = control.ids({ resource: 'subscriptions' }).map(String)
  const set = (id: string, fields: object) =>
    control.update({ resource: 'subscriptions', id, fields: { ...fields } })
  for (const id of ids)
    set(id, {
      status: 'needs_attention',
      needs_attention: '2026-11-20T10:00:00Z',
      needs_attention_reason: 'gateway_issue',
      cancelled: null,
      paused: null,
    })
  const racing: ChangeKind = {
    ...kind,
    send: async (request) => {
      const id = String(request.body['id'])
      const fields = meanwhile(id)
      if (fields === 'delete') control.delete({ resource: 'subscriptions', id })
      else if (Object.keys(fields).length > 0) set(id, fields)
      return await kind.send(request)
    },
  }
  const engine = await startEngine({ kind: racing, sandbox, limits: { concurrency: 1, ...limits } })
  const snapshot = { reason: 'gateway_issue', since: '2026-11-20T10:00:00Z' }
  await engine.stage(resumeRows(sandbox, 6).map(({ row, body }) => ({ row, body: { ...body, snapshot } })))
  const canary = [1, 2, 3]
  await engine.ledger.addToCanary({ run: engine.run, rows: canary })
  return {
    ...engine,
    sandbox,
    set,
    ids,
    failed: async () => (await canaryResult(engine)).failed,
    next: async () => (await openCanary({ ...engine, size: canary.length })).canary,
    resumes: () => control.effects().filter(({ effect }) => effect === 'resume').length,
  }
}

test.for([
  ['made active', active, { state: 'done', outcome: 'alreadyFine' }, 'it is already active'],
  ['cancelled', { status: 'cancelled' }, { state: 'dropped', outcome: 'gone' }, 'it is cancelled now'],
  ['finalized', { status: 'finalized' }, { state: 'dropped', outcome: 'gone' }, 'it is finalized now'],
  ['paused', { status: 'paused' }, { state: 'parked', outcome: 'needsPerson' }, 'it is paused now'],
  ['deleted', 'delete', { state: 'parked', outcome: 'notFound' }, 'not found among'],
] as const)(
  'a resume refused because the service has %s the subscription is what it has become, and no failure of the canary',
  async ([, fields, closed, message]) => {
    const race = await startRace({ meanwhile: () => fields })
    expect(await race.send({ canary: true })).toMatchObject({ failed: 0, unknown: 0, begun: 3 })
    const [first] = await race.rows()
    expect(first).toMatchObject({ ...closed, sends: 0 })
    expect(first?.error).toContain(message)
    expect(first?.error).toContain(fields === 'delete' ? '; the service refused it: ' : refusal)
    expect(await race.failed()).toEqual([])
    // Nothing was learned about resuming: others go first instead.
    expect(await race.next()).toEqual([4, 5, 6])
    expect(race.resumes()).toBe(0)
  },
)

test.for([400, 404, 409, 422])(
  'a resume that the service refuses with %d although nothing has changed is rejected with its message and fails the canary',
  async (status) => {
    const faults: Fault[] = [
      { kind: 'refuse', status, answer: { detail: 'The card has expired.' }, on: post },
    ]
    const race = await startRace({ meanwhile: () => ({}), faults })
    expect(await race.send({ canary: true })).toMatchObject({ failed: 3 })
    await race.settle()
    expect((await race.rows())[0]).toMatchObject({
      state: 'rejected',
      outcome: 'refused',
      error: 'The card has expired.',
      sends: 1,
    })
    expect(await race.failed()).toEqual([''])
    expect(requestsOf(race.sandbox, 'POST')).toHaveLength(3)
  },
)

test('a resume that was refused counts for maxChanges, whatever its lookup shows, also in the next segment', async () => {
  const race = await startRace({ meanwhile: () => ({ status: 'cancelled' }), limits: { maxChanges: 2 } })
  expect(await race.send({})).toMatchObject({ ended: 'maxChanges', begun: 2 })
  expect(await race.send({})).toMatchObject({ ended: 'maxChanges', begun: 0 })
  expect(requestsOf(race.sandbox, 'POST')).toHaveLength(2)
})

test('a refused resume is looked up again where the first lookup fails or shows an old state', async () => {
  // The first lookup of row 1 gets no answer; that of row 2 shows the subscription as it was.
  const race = await startRace({ meanwhile: (id) => (id === race.ids[1] ? {} : active) })
  const { control } = race.sandbox
  control.setFaults({
    faults: [
      { kind: 'error', on: list, from: 2 },
      { kind: 'refuse', answer: { detail: refusal }, on: post },
    ],
  })
  await race.send({ rows: [1] })
  expect((await race.rows())[0]).toMatchObject({ state: 'unknown', outcome: 'refused', sends: 1 })
  control.setFaults({ faults: [{ kind: 'refuse', answer: { detail: refusal }, on: post }] })
  await race.send({ rows: [2] })
  expect((await race.rows())[1]).toMatchObject({ state: 'unknown', outcome: 'refused', sends: 1 })
  race.set(race.ids[1] ?? '', active)
  await race.settle()
  const [first, second] = await race.rows()
  for (const row of [first, second])
    expect(row).toMatchObject({ state: 'done', outcome: 'alreadyFine', sends: 0 })
  expect(race.resumes()).toBe(0)
})

test('a resume that is refused after a lost reply is looked up as before, and keeps its attempts', async () => {
  const faults: Fault[] = [{ kind: 'reset', effect: 'none', on: post, requests: [1] }]
  let sends = 0
  const race = await startRace({ meanwhile: () => ((sends += 1) > 1 ? active : {}), faults })
  await race.send({ rows: [1] })
  await race.settle()
  expect((await race.rows())[0]).toMatchObject({ state: 'staged', outcome: 'noEffect', sends: 1 })
  await expect.poll(async () => (await race.send({ rows: [1] }), (await race.rows())[0]?.sends)).toBe(2)
  await race.settle()
  // The request without a reply may have had its effect late, so this is not "already fine".
  expect((await race.rows())[0]).toMatchObject({ state: 'done', outcome: 'recovered', sends: 2 })
})

test('a resume that fell back and is then refused each time keeps the service’s message and uses up its attempts', async () => {
  const answer = { detail: 'The card has expired.' }
  const race = await startRace({
    meanwhile: () => ({}),
    faults: [
      { kind: 'fallBack', on: post, requests: [1] },
      { kind: 'refuse', answer, on: post, from: 2 },
    ],
  })
  await expect
    .poll(async () => {
      await race.send({ rows: [1] })
      await race.settle()
      return (await race.rows())[0]
    })
    .toMatchObject({ state: 'parked', outcome: 'attemptsUsedUp', sends: attempts.most })
  expect((await race.rows())[0]?.error).toContain(answer.detail)
})

test('a refused resume whose reason has changed meanwhile needs a person where the run does not resume the new one', async () => {
  const kind = createResumeKind({
    attempts: 3,
    ends: () => undefined,
    refuses: ({ now }) =>
      now.reason === 'gateway_issue' ? undefined : { needsPerson: `its reason is ${now.reason} now` },
  })
  const race = await startRace({
    kind,
    meanwhile: () => ({ needs_attention_reason: 'reference_expired' }),
    faults: [{ kind: 'refuse', answer: { detail: 'Ask for a reference.' }, on: post }],
  })
  await race.send({ canary: true })
  const [first] = await race.rows()
  expect(first).toMatchObject({ state: 'parked', outcome: 'needsPerson', sends: 0 })
  expect(first?.error).toBe(
    'its reason is reference_expired now; the service refused it: Ask for a reference.',
  )
  expect(await race.failed()).toEqual([])
})

test('a refusal that comes after another attempt has resumed the subscription says nothing about that resume', async () => {
  const claimed = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  let sends = 0
  const kind: ChangeKind = {
    ...resumeSubscription,
    send: (request) => {
      if ((sends += 1) > 1) return resumeSubscription.send(request)
      const beforeSend = async () => {
        await request.options.beforeSend?.()
        claimed.resolve()
        await resumed.promise
      }
      return resumeSubscription.send({ ...request, options: { ...request.options, beforeSend } })
    },
  }
  const race = await startRace({ kind, meanwhile: () => ({}) })
  const overtaken = race.send({ rows: [1] })
  await claimed.promise
  await race.send({ rows: [] })
  await race.settle()
  await expect.poll(async () => (await race.send({ rows: [1] }), sends)).toBe(2)
  resumed.resolve()
  await overtaken.catch(() => undefined)
  expect((await race.rows())[0]).toMatchObject({ state: 'unknown', outcome: 'resumed', sends: 2 })
  await race.settle()
  expect((await race.rows())[0]).toMatchObject({ state: 'done', outcome: 'recovered', sends: 2 })
})

test('a resume whose attempts are used up before it is sent is parked, and no request leaves', async () => {
  const bounded = createResumeKind({ refuses: () => undefined, attempts: 2, ends: () => undefined })
  const rows = (sandbox: Sandbox) => resumeRows(sandbox, 1, { attemptsBefore: 2 })
  const { sandbox, engine } = await startRun(bounded, rows, oneBroken)
  await engine.send()
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', outcome: 'attemptsUsedUp', sends: 0 })
  expect(requestsOf(sandbox, 'POST')).toEqual([])
})
