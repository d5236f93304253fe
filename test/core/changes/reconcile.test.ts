import { expect, test } from 'vitest'
import type { Billing } from '../../../core/billing/client.ts'
import { canaryResult } from '../../../core/changes/send/canary.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { retentions } from '../../../core/billing/resources/tax-documents.ts'
import { findRecords } from '../../../core/changes/kinds/find-records.ts'
import type { ChangeToStage } from '../../../core/changes/staged-changes.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import {
  attempts,
  clientOf,
  contactRows,
  copies,
  insertRetention,
  oneBroken,
  requestsOf,
  resumeRows,
  retention,
  retentionRows,
  startCache,
  startEngine,
  startRun,
  startSandbox,
} from './engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const kind = changeKinds['create-retention']
const post = 'POST /retentions/'
const resume = changeKinds['resume-subscription']
const postResume = 'POST /subscriptions/{id}/resume/'
const lost = (effect: 'none' | 'done', ...requests: number[]) =>
  ({ kind: 'reset', effect, on: post, requests }) as const
const retentionsIn = (sandbox: Sandbox) => [...copies(sandbox, 'retentions', 'number').values()]
const deleteAll = (sandbox: Sandbox) => {
  for (const id of sandbox.control.ids({ resource: 'retentions' }))
    sandbox.control.delete({ resource: 'retentions', id })
}
type Engine = Awaited<ReturnType<typeof startEngine>>

/** A run of retentions, sent one after the other, of which the second gets no reply. */
interface LostReply extends Pick<SandboxOptions, 'faults' | 'decimals'> {
  settleMs?: number
  rows?: (sandbox: Sandbox) => ChangeToStage[]
  /** Between the requests and their lookups. */
  meanwhile?: (world: { sandbox: Sandbox; engine: Engine }) => unknown
  /** The second row in the end. */
  row: object
  /** How often the service has each retention in the end. */
  has?: number[]
}

const once = [1, 1, 1]
const absent = { faults: [lost('none', 2)] }

const cases: Record<string, LostReply> = {
  'a retention whose reply was lost after it was made is found, and not made again': {
    faults: [lost('done', 2)],
    row: { state: 'done', outcome: 'found', sends: 1 },
    has: once,
  },
  'a request that takes effect late is waited for': {
    faults: [{ kind: 'lateEffect', seconds: 1.5, on: post, requests: [2] }],
    settleMs: 1_000,
    row: { state: 'done', outcome: 'found', sends: 1, lookups: 2 },
    has: once,
  },
  'a retention that is absent each time is for a person after three requests': {
    faults: [{ kind: 'reset', effect: 'none', on: post, body: { number: 2 } }],
    row: { state: 'parked', outcome: 'sentTooOften', sends: 3 },
  },
  'absence is not believed where the same lookup finds what is known to be done only as an older record': {
    ...absent,
    // As in an old replica.
    meanwhile: ({ sandbox }) => {
      deleteAll(sandbox)
      insertRetention(sandbox, retention(3))
    },
    row: { state: 'parked', outcome: 'controlFailed', sends: 1 },
  },
  'absence is not believed where the service ignores the filter': {
    faults: [{ kind: 'ignoreFilters', on: 'GET /retentions/' }, lost('none', 2)],
    row: { state: 'parked', outcome: 'filterIgnored', sends: 1 },
  },
  'absence is not believed where the same lookup does not find what is known to be done': {
    ...absent,
    meanwhile: ({ sandbox }) => deleteAll(sandbox),
    row: { state: 'parked', outcome: 'controlFailed', sends: 1 },
  },
  'absence is believed although the service has the row that was done last twice, and the ledger has the later one':
    {
      ...absent,
      rows: (sandbox) => (insertRetention(sandbox, retention(3)), retentionRows(3)),
      row: { state: 'done', outcome: 'created', sends: 2 },
      has: [2, 1, 1],
    },
  'absence is believed although a person has resolved the row that was done last, with an id that nothing confirms':
    {
      ...absent,
      meanwhile: async ({ engine }) => {
        const last = (await engine.rows())[2]!
        const resolved = {
          state: 'done',
          outcome: 'resolved',
          answerId: '999999',
          resolvedBy: 'Ana',
        } as const
        const patch = { ...resolved, closedAt: Date.now() }
        await engine.ledger.move({ id: last.id, from: ['done'], patch })
      },
      row: { state: 'done', outcome: 'created', sends: 2 },
    },
  'somebody else’s retention under the same number is never taken for ours, and forbids a resend': {
    ...absent,
    meanwhile: ({ sandbox }) => insertRetention(sandbox, { ...retention(2), total: 99 }),
    row: {
      state: 'parked',
      outcome: 'otherContents',
      sends: 1,
      error: expect.stringMatching(/^the service has \d+ under/),
    },
  },
  'one that the service had when it was staged is neither ours nor in the way': {
    ...absent,
    rows: (sandbox) => {
      const before = JSON.stringify({ ids: [insertRetention(sandbox, retention(2))] })
      return retentionRows(3).map((row) => (row.row === 2 ? { ...row, before } : row))
    },
    row: { state: 'done', outcome: 'created', sends: 2 },
    has: [2, 1, 1],
  },
  'a number compares as a number and not as a text: 1.5 is 1.50': {
    decimals: 'strings',
    faults: [lost('done', 2)],
    rows: () =>
      retentionRows(2).map((row) => ({ ...row, body: { ...row.body, total: JSON.rawJSON('1.5000') } })),
    row: { state: 'done', outcome: 'found' },
  },
  'a refusal of what was sent before is looked into: "already exists" may be our own': {
    // The first try is said to have failed and lands only after the second was refused.
    faults: [lost('none', 2), { kind: 'error', status: 409, effect: 'done', on: post, requests: [4] }],
    row: { state: 'done', outcome: 'found', sends: 2 },
    has: once,
  },
  'a refusal of what was sent before, and is proven absent, stays a refusal': {
    faults: [lost('none', 2), { kind: 'error', status: 409, effect: 'none', on: post, requests: [4] }],
    row: { state: 'rejected', outcome: 'refused', sends: 2 },
  },
}

test.each(Object.entries(cases))(
  '%s',
  async (_, { faults, decimals, settleMs, rows, meanwhile, row, has }) => {
    const sandbox = await startSandbox({ ...(faults && { faults }), ...(decimals && { decimals }) })
    const engine = await startEngine({
      kind,
      sandbox,
      concurrency: 1,
      ...(settleMs && { settleMs }),
    })
    await engine.stage(rows?.(sandbox) ?? retentionRows(3))
    await engine.send()
    await meanwhile?.({ sandbox, engine })
    await engine.finish()
    const second = (await engine.rows())[1]!
    expect(second).toMatchObject(row)
    if (has !== undefined) expect(retentionsIn(sandbox).toSorted((a, b) => b - a)).toEqual(has)
    if (second.state !== 'done') return
    const record = sandbox.control.get({ resource: 'retentions', id: Number(second.answerId) })
    expect(record).toMatchObject({ number: 2 })
    expect(second.before ?? '').not.toContain(`"${second.answerId}"`)
  },
)

test.each([
  ['whose reply was lost', { kind: 'reset', effect: 'none' }, 3],
  ['that was answered', { kind: 'fallBack' }, 1],
] as const)(
  'a resume %s and that had no lasting effect is sent again only when its first request cannot be on its way any more',
  async (_, fault, settles) => {
    const faults = [{ ...fault, on: postResume, requests: [1] }]
    const { engine } = await startRun(resume, resumeRows, { ...oneBroken, faults })
    await engine.send()
    const since = (await engine.rows())[0]?.unknownSince ?? NaN
    await engine.settle({ settleMs: 1_000, ledger: { ...engine.ledger, now: () => since + 1_000 } })
    expect((await engine.rows())[0]).toMatchObject({
      state: 'staged',
      sends: 1,
      notBefore: since + settles * 1_000,
    })
  },
)

/** Deletes of all orders of the sandbox. */
const orderRows = (sandbox: Sandbox): ChangeToStage[] =>
  sandbox.control.ids({ resource: 'orders' }).map((id, index) => ({ row: index + 1, body: { id } }))

test('a delete that was refused after a request without an answer is for a person, and not sent again', async () => {
  const on = 'DELETE /orders/{id}/'
  const { engine } = await startRun(changeKinds['delete-order'], orderRows, {
    counts: { orders: 1 },
    faults: [
      { kind: 'error', status: 500, on, requests: [1] },
      { kind: 'error', status: 409, on, from: 2 },
    ],
  })
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', outcome: 'refusedLater', sends: 2 })
})

test('a lookup that matches more than a page finds all records', async () => {
  const sandbox = await startSandbox({ counts: { retentions: 450 } })
  const filters = { document: '7' }
  const carries = (record: Record<string, unknown>) => String(record['document']) === '7'
  const billing = clientOf(sandbox)
  const found = await findRecords({ billing, resource: retentions, filters, carries, signal: undefined })
  const there = [...sandbox.control.records({ resource: 'retentions' })].map((text) => JSON.parse(text))
  expect(found.honoured).toBe(true)
  expect(found.records.length).toBeGreaterThan(100)
  expect(found.records).toHaveLength(there.filter(carries).length)
})

test('absence is not believed if the list no longer shows a row that is done', async () => {
  const faults = [lost('none', 2), lost('done', 3)]
  const { sandbox, engine } = await startRun(kind, retentionRows(4), { faults, concurrency: 1 })
  await engine.send()
  // The first looks: row 2 is not there, and of row 3 it is not told yet.
  const hide = { kind: 'hide', statuses: ['draft'], on: 'GET /retentions/' } as const
  sandbox.control.setFaults({ faults: [hide] })
  await engine.lookOnce()
  sandbox.control.setFaults({ faults: [] })
  const { billing } = engine
  // Row 2 takes three lookups: its own, the control, and its own again.
  let left = 3
  const list: typeof billing.list = async (query) => {
    const page = await billing.list(query)
    left -= 1
    if (left === 0) sandbox.control.setFaults({ faults: [hide] })
    return page
  }
  await engine.lookOnce({ billing: { ...billing, list } })
  sandbox.control.setFaults({ faults: [] })
  await engine.finish()
  expect([...copies(sandbox, 'retentions', 'number').values()]).toEqual([1, 1, 1, 1])
  expect((await engine.rows())[2]).toMatchObject({ state: 'parked', outcome: 'controlFailed' })
})

test('absence is not believed where the list counts a record that it does not show', async () => {
  const { sandbox, engine } = await startRun(kind, retentionRows(3), {
    faults: [lost('done', 2)],
    concurrency: 1,
    billing: (of) => {
      const service = clientOf(of)
      const list: Billing['list'] = async (query) => {
        const page = await service.list(query)
        return query.filters?.['number'] === '2' ? { ...page, records: [] } : page
      }
      return { ...service, list }
    },
  })
  await engine.finish()
  expect(retentionsIn(sandbox)).toEqual(once)
  expect((await engine.rows())[1]).toMatchObject({ state: 'parked', outcome: 'filterIgnored', sends: 1 })
})

test('absence is not believed while nothing of the run is known to be done', async () => {
  const { engine } = await startRun(kind, retentionRows(1), {
    faults: [{ kind: 'reset', effect: 'none', on: post }],
  })
  await engine.ledger.addToCanary({ run: engine.run, rows: [1] })
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', outcome: 'noControl' })
  expect(await canaryResult(engine)).toEqual({ rows: [1], failed: [''] })
})

test('updates of scalar fields and deletes are sent again, and a delete that is gone then is done', async () => {
  const lostReply = { kind: 'reset', effect: 'done' } as const
  const missing = { row: 4, body: { id: 'ord_none' } }
  const { engine: deletes } = await startRun(
    changeKinds['delete-order'],
    (sandbox) => [...orderRows(sandbox), missing],
    {
      counts: { orders: 3 },
      faults: [{ ...lostReply, on: 'DELETE /orders/{id}/', requests: [2] }],
      concurrency: 1,
    },
  )
  await deletes.finish()
  const states = (await deletes.rows()).map(({ state, sends }) => `${state} ${sends}`)
  expect(states).toEqual(['done 1', 'done 2', 'done 1', 'rejected 1'])

  const { engine: updates } = await startRun(
    changeKinds['update-contact'],
    (sandbox) => contactRows(sandbox, 1, { name: 'Ana' }),
    { counts: { customers: 5 }, faults: [{ ...lostReply, on: 'PATCH /contacts/{id}/', requests: [1] }] },
  )
  await updates.finish()
  expect((await updates.rows())[0]).toMatchObject({ state: 'done', outcome: 'updated', sends: 2 })
})

test('an update with lines, addons, references or a coupon is not repeated without a person', async () => {
  const update = changeKinds['update-subscription']
  for (const field of ['lines', 'addons', 'references', 'coupon'])
    expect(update.whenUnknown({ id: 'sub_1', [field]: [] })).toBe('park')
  expect(update.whenUnknown({ id: 'sub_1', note: 'x' })).toBe('sendAgain')
  const rows = (sandbox: Sandbox) =>
    resumeRows(sandbox).map(({ row, body: { id } }) => ({
      row,
      body: { id, references: [{ document: '801', serial: 'A-1' }] },
    }))
  const { sandbox, engine } = await startRun(update, rows, {
    ...oneBroken,
    faults: [{ kind: 'error', status: 500, effect: 'done', on: 'PATCH /subscriptions/{id}/' }],
  })
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', outcome: 'cannotLookUp', sends: 1 })
  expect(requestsOf(sandbox, 'PATCH')).toHaveLength(1)
})

test('a row without an answer after three sends needs a person', async () => {
  const { engine } = await startRun(changeKinds['delete-order'], orderRows, {
    counts: { orders: 1 },
    faults: [{ kind: 'error', status: 500, on: 'DELETE /orders/{id}/' }],
  })
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', outcome: 'sentTooOften', sends: 3 })
})

test('a lookup that fails leaves its rows unknown', async () => {
  const { sandbox, engine } = await startRun(kind, retentionRows(1), {
    faults: [lost('done', 1)],
    settleMs: 0,
  })
  await engine.send()
  const [token] = [sandbox.token]
  sandbox.control.adjust({ tokens: [] })
  await expect(engine.settle()).rejects.toThrow('token')
  expect((await engine.rows())[0]).toMatchObject({ state: 'unknown' })
  sandbox.control.adjust({ tokens: [token] })
  await engine.settle()
  expect((await engine.rows())[0]).toMatchObject({ state: 'done', outcome: 'found' })
})

async function startRecovery(options: SandboxOptions, most = 3) {
  const { sandbox, engine } = await startRun(resume, (sandbox) => resumeRows(sandbox, 3), {
    counts: { subscriptions: 40, customers: 10, plans: 3 },
    needsAttention: 1,
    concurrency: 1,
    ...options,
  })
  const broken = resumeRows(sandbox, 3).map(({ body }) => String(body['id']))
  const settle = () => engine.settle({ attempts: { ...attempts, most } })
  return { sandbox, engine, broken, settle }
}

test('one that falls back is tried again, up to its attempts, and then is for a person and a later run', async () => {
  const { sandbox, engine, broken } = await startRecovery({
    faults: [{ kind: 'fallBack', on: postResume, requests: [1, 4, 5] }],
  })
  await engine.finish()
  const [first, second] = await engine.rows()
  expect(first).toMatchObject({ state: 'parked', outcome: 'attemptsUsedUp', sends: 3, holdsKey: 0 })
  expect(first?.error).toMatch(/^needs_attention: \w+ \(attempt 3 of 3\)$/)
  expect(second).toMatchObject({ state: 'done', outcome: 'recovered', sends: 1 })
  expect(requestsOf(sandbox, 'POST')).toHaveLength(5)
  const of = { workspace: 'acc_sandbox', mode: 'live', kind: resume.name, keys: [broken[0]!] } as const
  expect((await engine.ledger.history(of)).get(broken[0]!)).toMatchObject({ attempts: 3 })
  expect(await engine.ledger.holders(of)).toEqual([])
})

test('one that falls back is tried again after waits that grow', async () => {
  const { sandbox, engine } = await startRecovery({ faults: [{ kind: 'fallBack', on: postResume }] })
  await engine.segment({ attempts: { most: 3, waitsMs: [150, 300] } })
  const posts = requestsOf(sandbox, 'POST')
  const [[first, second, third] = []] = Map.groupBy(posts, ({ url }) => url).values()
  expect(second!.receivedAt - first!.receivedAt).toBeGreaterThan(140)
  expect(third!.receivedAt - second!.receivedAt).toBeGreaterThan(290)
})

test('a subscription that falls back in a canary has failed it, and is resumed again within its attempts', async () => {
  const { engine, settle } = await startRecovery({
    faults: [{ kind: 'fallBack', on: postResume, requests: [1] }],
  })
  await engine.ledger.addToCanary({ run: engine.run, rows: [1] })
  await engine.send({ canary: true })
  await settle()
  expect((await engine.rows())[0]).toMatchObject({ state: 'staged', outcome: 'fellBack', sends: 1 })
  expect(await canaryResult(engine)).toEqual({ rows: [1], failed: [''] })
  expect(await engine.send({ canary: true })).toMatchObject({ ended: 'finished', begun: 0 })
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'done', outcome: 'recovered', sends: 2 })
})

test('one that is sent again after an answer without an id takes no record for its own', async () => {
  const sandbox = await startSandbox({ faults: [lost('none', 3)] })
  const folder = await temporaryFolder()
  const first = await startEngine({ kind, sandbox, folder, run: 'first', concurrency: 1 })
  await first.stage(retentionRows(2))
  await first.finish()
  const { id } = (await first.rows())[1]!
  // As an older version kept such an answer.
  await first.ledger.move({ id, from: ['done'], patch: { answerId: null } })
  const second = await startEngine({ kind, sandbox, folder, run: 'second', concurrency: 1 })
  await second.stage([{ row: 1, body: retention(2), sendAgain: true }])
  await second.finish()
  expect(await second.rows()).toMatchObject([{ state: 'parked', outcome: 'indistinct', answerId: null }])
})

test('one that is sent again takes no record for its own that was there before an earlier run sent it', async () => {
  const sandbox = await startSandbox({ faults: [lost('none', 3)] })
  const theirs = insertRetention(sandbox, retention(1))
  const folder = await temporaryFolder()
  const first = await startEngine({ kind, sandbox, folder, run: 'first', concurrency: 1 })
  await first.stage([{ row: 1, body: retention(1), before: JSON.stringify({ ids: [theirs] }) }])
  await first.finish()
  const second = await startEngine({ kind, sandbox, folder, run: 'second', concurrency: 1 })
  await second.stage([
    { row: 1, body: retention(2) },
    { row: 2, body: retention(1), sendAgain: true },
  ])
  await second.finish()
  expect((await second.rows())[1]).toMatchObject({ state: 'done', outcome: 'created', sends: 2 })
  expect(copies(sandbox, 'retentions', 'number').get('1')).toBe(3)
})

test('absence is not believed where filters begin to find between the lookup and its control', async () => {
  let asked = 0
  const billing = (sandbox: Sandbox): Billing => {
    const service = clientOf(sandbox)
    const list: Billing['list'] = async (query) => {
      const page = await service.list(query)
      return (asked += 1) > 2 ? page : { ...page, records: [], count: 0, next: null }
    }
    return { ...service, list }
  }
  const how = { faults: [lost('done', 2)], billing, concurrency: 1 }
  const { sandbox, engine } = await startRun(kind, retentionRows(2), how)
  await engine.finish()
  expect([...copies(sandbox, 'retentions', 'number').values()]).toEqual([1, 1])
  expect((await engine.rows())[1]).toMatchObject({ state: 'done', outcome: 'found', sends: 1 })
})

test('a lookup does not believe a cache that answers from before it', async () => {
  const sandbox = await startSandbox({
    faults: [{ kind: 'lateEffect', seconds: 600, on: post, requests: [2] }],
  })
  const billing = clientOf(sandbox, { baseUrl: await startCache(sandbox) })
  const engine = await startEngine({ kind, sandbox, billing, concurrency: 1 })
  await engine.stage(retentionRows(2))
  await engine.send()
  await engine.lookOnce()
  expect((await engine.rows())[1]?.lookups).toBe(1)
  sandbox.control.landLateEffects()
  await engine.finish()
  expect([...copies(sandbox, 'retentions', 'number').values()]).toEqual([1, 1])
  expect((await engine.rows())[1]).toMatchObject({ state: 'done', outcome: 'found', sends: 1 })
})

test('a resume that took effect is not sent again because a cache shows what it was before', async () => {
  const faults = [{ kind: 'reset', effect: 'done', on: postResume, requests: [1] }] as const
  const sandbox = await startSandbox({ ...oneBroken, faults })
  const billing = clientOf(sandbox, { baseUrl: await startCache(sandbox) })
  const engine = await startEngine({ kind: resume, sandbox, billing })
  await engine.stage(resumeRows(sandbox))
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'done', outcome: 'recovered', sends: 1 })
  expect(sandbox.control.effects().filter(({ effect }) => effect === 'resume')).toHaveLength(1)
})
