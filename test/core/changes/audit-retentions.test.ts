import { expect, test } from 'vitest'
import {
  auditRetentions,
  type Finding,
  newestCreated,
  newestPage,
} from '../../../core/changes/audit-retentions.ts'
import type { RowPatch } from '../../../core/state/ledger/row.ts'
import type { Billing } from '../../../core/billing/client.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { ChangeToStage } from '../../../core/changes/staged-changes.ts'
import { summarize } from '../../../core/changes/report.ts'
import { recordAnswer } from '../../../core/changes/transitions.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import {
  clientOf,
  insertRetention,
  retention,
  retentionRows,
  stageChanges,
  startEngine,
  startSandbox,
  withoutEnd,
  workspace,
} from './engine.ts'

const kind = changeKinds['create-retention']
const post = 'POST /retentions/'
const longAgo = 1_700_000_000_000_000

/** 250 retentions are there; `count` are imported; then `between` happens; then the audit. */
async function importAndAudit({
  count = 10,
  between = () => {},
  existing = 250,
  bound,
  ...options
}: SandboxOptions & {
  count?: number
  existing?: number
  bound?: string
  between?: (world: Awaited<ReturnType<typeof startWorld>>) => unknown
} = {}) {
  const world = await startWorld({ ...options, counts: { retentions: existing } })
  const newestBefore = bound ?? newestCreated(await newestPage({ billing: world.billing }))
  return await auditAfter({ world, newestBefore, count, between })
}

async function auditAfter({
  world,
  newestBefore,
  count = 0,
  rows = retentionRows(count),
  between = () => {},
}: {
  world: Awaited<ReturnType<typeof startWorld>>
  newestBefore: string | undefined
  count?: number
  rows?: readonly ChangeToStage[]
  between?: (world: Awaited<ReturnType<typeof startWorld>>) => unknown
}) {
  const { engine, billing } = world
  await engine.stage(rows)
  await engine.finish()
  await between(world)
  const findings: Finding[] = []
  const audit = await auditRetentions({
    ledger: engine.ledger,
    run: engine.run,
    billing,
    workspace,
    testMode: false,
    newestBefore,
    readLagMs: 1_000,
    concurrency: 2,
    onFinding: (finding) => findings.push(finding),
  })
  const summary = await summarize({ ledger: engine.ledger, run: engine.run })
  const verdict = verdictOf({ kind: kind.name, summary, audit })
  return { ...world, audit, findings, verdict, newestBefore }
}

const idIn = (record: unknown) => String((record as { id: unknown }).id)

async function startWorld(options: SandboxOptions) {
  const sandbox = await startSandbox(options)
  const service = clientOf(sandbox)
  const filters: { work: true | 'findNothing' | 'areIgnored'; hidden?: string } = { work: true }
  const list: Billing['list'] = async (query) => {
    if (query.filters?.['supplier'] === undefined) {
      const page = await service.list(query)
      return { ...page, records: page.records.filter((record) => idIn(record) !== filters.hidden) }
    }
    if (filters.work === true) return await service.list(query)
    if (filters.work === 'areIgnored')
      return await service.list({ ...query, filters: {}, ordering: '-created' })
    return { ...(await service.list(query)), records: [], count: 0, next: null }
  }
  const billing: Billing = { ...service, list }
  const engine = await startEngine({ kind, sandbox, billing, concurrency: 1 })
  const idOf = async (row: number) => {
    const found = await engine.ledger.row({ run: engine.run, row })
    return found?.answerId ?? ''
  }
  /** Changes a row that is done behind the run's back. */
  const change = async (row: number, patch: RowPatch) => {
    const { id } = (await engine.ledger.row({ run: engine.run, row }))!
    await engine.ledger.move({ id, from: ['done'], patch })
  }
  return { sandbox, billing, filters, engine, idOf, change }
}

test.each([
  ['reads a list that has fewer pages than the import has rows', 250, 5],
  ['looks up each row instead of what is older in a long list', 1_500, 13],
])('proves an import of which each row is there once, and %s', async (_, existing, requests) => {
  const { audit, findings, verdict } = await importAndAudit({ existing })
  expect(findings).toEqual([])
  expect(audit).toMatchObject({ reasons: [], rows: 10, found: 10 })
  expect(audit.requests).toBeLessThanOrEqual(requests)
  expect(verdict).toEqual({ verdict: 'proven', reasons: [], inDoubt: false, by: 'audit' })
})

test('proves an import into an empty list, and one with lost replies', async () => {
  const faults = [{ kind: 'reset', effect: 'done', on: post, requests: [2, 9] }] as const
  const { audit, verdict, newestBefore } = await importAndAudit({ existing: 0, faults })
  expect(newestBefore).toBeUndefined()
  expect(audit).toMatchObject({ reasons: [], rows: 10, found: 10 })
  expect(verdict.verdict).toBe('proven')
})

test('sees a row that is there twice, with both ids', async () => {
  const { findings, verdict, idOf } = await importAndAudit({
    between: ({ sandbox }) => insertRetention(sandbox, retention(5)),
  })
  expect(findings).toMatchObject([{ kind: 'double', row: 5 }])
  const [double] = findings
  if (double?.kind === 'double') expect(double.ids[0]).toBe(await idOf(5))
  expect(verdict).toMatchObject({ verdict: 'unproven', reasons: ['1 in the service more than once'] })
})

test.each([
  ['the same contents', {}, 250],
  ['other contents', { total: 1 }, 250],
  ['the same contents, in a long list', {}, 1_500],
  ['the same contents, in a long list whose filters do not find the rows', {}, 1_500, 'findNothing'],
  ['the same contents, in a long list whose filters are ignored', {}, 1_500, 'areIgnored'],
] as const)(
  'counts a record that was there long before the import with %s as a double',
  async (_, other, existing, work: true | 'findNothing' | 'areIgnored' = true) => {
    const { findings, verdict, idOf } = await importAndAudit({
      existing,
      between: ({ sandbox, filters }) => {
        const fields = { ...retention(5), ...other }
        insertRetention(sandbox, fields, longAgo)
        filters.work = work
      },
    })
    expect(findings).toMatchObject([{ kind: 'double', row: 5, ids: [await idOf(5), expect.any(String)] }])
    expect(findings[0]?.message).toContain('was there before the import')
    expect(verdict).toMatchObject({ verdict: 'unproven', reasons: ['1 in the service more than once'] })
  },
)

test.each([250, 1_500])(
  'calls somebody else’s retention under the same number a conflict, not ours, in a list of %i',
  async (existing) => {
    const { findings, verdict } = await importAndAudit({
      existing,
      faults: [{ kind: 'otherClient', when: 'after', fields: { total: 1 }, on: post, requests: [7] }],
    })
    expect(findings).toMatchObject([{ kind: 'conflict', row: 7 }])
    expect(verdict.verdict).toBe('unproven')
  },
)

test('looks up a row that the list does not show before it calls it missing', async () => {
  const { audit, findings } = await importAndAudit({
    between: async ({ filters, idOf }) => (filters.hidden = await idOf(3)),
  })
  expect(findings).toEqual([])
  expect(audit).toMatchObject({ rows: 10, found: 10 })
})

test('sees a row that is gone', async () => {
  const { findings, audit } = await importAndAudit({
    between: async ({ sandbox, idOf }) =>
      sandbox.control.delete({ resource: 'retentions', id: Number(await idOf(3)) }),
  })
  expect(findings).toMatchObject([{ kind: 'missing', row: 3 }])
  expect(audit).toMatchObject({ rows: 10, found: 9 })
})

test('lists every field that is stored differently than sent, by row, sent and stored', async () => {
  const { findings, audit } = await importAndAudit({
    faults: [{ kind: 'storeOtherwise', fields: { total: 9.5, date: '2026-03-02' }, on: post, requests: [4] }],
  })
  expect(findings).toMatchObject([
    { kind: 'difference', row: 4, field: 'date', sent: '2026-03-01', stored: '2026-03-02' },
    { kind: 'difference', row: 4, field: 'total', sent: '4.50', stored: '9.5' },
  ])
  expect(audit.findings.difference).toBe(2)
})

test.each([250, 1_500])(
  'does not count what a person accepted, what another run made, or why a row was refused, in a list of %i',
  async (existing) => {
    const world = await startWorld({
      counts: { retentions: existing },
      faults: [{ kind: 'error', status: 409, on: post, requests: [3] }],
    })
    const { sandbox, engine } = world
    const ids = [1, 2, 3, 5, 5].map((number) => insertRetention(sandbox, retention(number), longAgo))
    const [accepted, earlier, , acceptedEarlier, madeEarlier] = ids
    const changes = [
      { row: 1, body: retention(2) },
      { row: 2, body: retention(5), before: JSON.stringify({ ids: [acceptedEarlier!] }) },
    ]
    await stageChanges({ ledger: engine.ledger, run: 'earlier', kind, changes })
    for (const [index, answerId] of [earlier!, madeEarlier!].entries()) {
      const made = await engine.ledger.row({ run: 'earlier', row: index + 1 })
      await engine.ledger.move({ id: made!.id, from: ['staged'], patch: { state: 'done', answerId } })
    }
    const done = { state: 'dropped', outcome: 'doneEarlier', error: '', answerId: madeEarlier! } as const
    const rows = [
      { row: 1, body: retention(1), before: JSON.stringify({ ids: [accepted!] }) },
      { row: 2, body: retention(2), sendAgain: true },
      { row: 3, body: retention(3) },
      { row: 4, body: retention(4) },
      { row: 5, body: retention(5), closed: done },
      { row: 6, body: retention(6), closed: { state: 'dropped', outcome: 'existed', error: '' } as const },
    ]
    const newestBefore = newestCreated(await newestPage(world))
    const between = () => insertRetention(sandbox, retention(6))
    const { findings, verdict } = await auditAfter({ world, newestBefore, rows, between })
    expect(findings).toEqual([])
    expect(verdict.verdict).toBe('proven')
  },
)

test('finds that a retention which the ledger has as parked exists', async () => {
  const { findings } = await importAndAudit({
    between: ({ change }) => change(2, { state: 'parked', answerId: null }),
  })
  expect(findings).toMatchObject([{ kind: 'there', row: 2 }])
})

test('sees a row that is there although the service refused it', async () => {
  const { findings, verdict } = await importAndAudit({
    faults: [{ kind: 'error', status: 409, effect: 'done', on: post, requests: [6] }],
  })
  expect(findings).toMatchObject([{ kind: 'there', row: 6 }])
  expect(verdict.verdict).toBe('unproven')
})

test.each([250, 1_500])(
  'takes an answer without an id for the row’s own, where a list of %i has it once',
  async (existing) => {
    const { findings, verdict } = await importAndAudit({
      existing,
      between: ({ change }) => change(2, { answerId: null }),
    })
    expect(findings).toEqual([])
    expect(verdict.verdict).toBe('proven')
  },
)

test.each([
  ['there twice', {}, 'double'],
  ['there once more with other contents', { total: 1 }, 'conflict'],
])('sees a row that is %s, also where the list is not read down to it', async (_, other, kind) => {
  const { findings, verdict } = await importAndAudit({
    bound: new Date(Date.now() + 3_600_000).toISOString(),
    count: 5,
    existing: 1_000,
    between: ({ sandbox }) => {
      insertRetention(sandbox, { ...retention(4), ...other })
      insertNewer({ sandbox })
    },
  })
  expect(findings).toMatchObject([{ kind, row: 4 }])
  expect(verdict.verdict).toBe('unproven')
})

test('looks up retentions before its bound one by one', async () => {
  const later = new Date(Date.now() + 3_600_000).toISOString()
  const { audit, findings } = await importAndAudit({ bound: later, count: 5, existing: 1_000 })
  expect(findings).toEqual([])
  expect(audit).toMatchObject({ rows: 5, found: 5, reasons: [] })
})

/** 100 retentions that are newer fill the first window of the list. */
function insertNewer({ sandbox }: Pick<Awaited<ReturnType<typeof startWorld>>, 'sandbox'>) {
  for (let number = 1; number <= 100; number += 1) insertRetention(sandbox, retention(number + 5_000))
}

test('reads down to a refused row that exists, although a record before the run is ahead of the service’s clock', async () => {
  const faults = [{ kind: 'error', status: 409, effect: 'done', on: post, requests: [1] }] as const
  const world = await startWorld({ counts: { retentions: 1_000 }, faults })
  const created = (Date.now() + 600_000) * 1_000
  insertRetention(world.sandbox, retention(9_999), created)
  const newestBefore = newestCreated(await newestPage(world))
  const { findings } = await auditAfter({ world, newestBefore, count: 1, between: insertNewer })
  expect(findings).toMatchObject([{ kind: 'there', row: 1 }])
})

test('sees a refused row that became visible late, with a `created` from before the run', async () => {
  const world = await startWorld({
    counts: { retentions: 1_000 },
    faults: [{ kind: 'error', status: 409, on: post, requests: [1] }],
  })
  const newestBefore = new Date().toISOString()
  const created = (Date.parse(newestBefore) - 500) * 1_000
  const between = () => insertRetention(world.sandbox, retention(1), created)
  const { findings } = await auditAfter({ world, newestBefore, count: 1, between })
  expect(findings).toMatchObject([{ kind: 'there', row: 1 }])
})

test('reads the whole list where the run’s own records are older than its bound', async () => {
  const { findings } = await importAndAudit({
    bound: new Date(Date.now() + 3_600_000).toISOString(),
    count: 5,
    existing: 1_000,
    faults: [{ kind: 'error', status: 409, effect: 'done', on: post, requests: [2] }],
    between: insertNewer,
  })
  expect(findings).toMatchObject([{ kind: 'there', row: 2 }])
})

test('does not read the whole list for an old record that a person assigned to a row', async () => {
  const { audit, findings } = await importAndAudit({
    count: 5,
    existing: 1_500,
    between: async ({ sandbox, idOf, change }) => {
      sandbox.control.delete({ resource: 'retentions', id: Number(await idOf(3)) })
      const answerId = insertRetention(sandbox, retention(3), longAgo)
      await change(3, { answerId, resolvedBy: 'a person' })
    },
  })
  expect(findings).toEqual([])
  expect(audit.requests).toBeLessThan(10)
})

const fixedPages = (cap: number) => ({ faults: [{ kind: 'pageSize', cap, fixed: true } as const] })

test.for<[string, Parameters<typeof importAndAudit>[0], string]>([
  [
    'the list can not be read whole',
    { lists: { retentions: { orderings: [], defaultOrdering: 'updated' } } },
    'could not be read completely',
  ],
  ['each page of the list has 50 records', fixedPages(50), 'does not follow the page size'],
  ['each page of the list has 250 records', fixedPages(250), 'does not follow the page size'],
])('says that it proves nothing where %s, and finds each row all the same', async ([, service, reason]) => {
  const { audit, verdict } = await importAndAudit({ ...service, count: 5 })
  expect(audit.reasons).toEqual([expect.stringContaining(reason)])
  expect(audit).toMatchObject({ rows: 5, found: 5 })
  expect(verdict.verdict).toBe('unproven')
})

test('proves nothing where a record above its bound has no readable `created`', async () => {
  const wrong = { kind: 'wrongType', field: 'created', value: 'yesterday', records: 1 } as const
  const { audit, verdict } = await importAndAudit({
    count: 5,
    existing: 1_500,
    between: ({ sandbox }) => sandbox.control.setFaults({ faults: [{ ...wrong, on: 'GET /retentions/' }] }),
  })
  expect(audit.reasons).toEqual([expect.stringContaining('no readable created')])
  expect(verdict.verdict).toBe('unproven')
})

test('ends, and proves nothing, where the service repeats the last page of the list endlessly', async () => {
  const { audit, verdict, sandbox } = await importAndAudit({
    count: 5,
    between: ({ billing }) => Object.assign(billing, withoutEnd({ ...billing }, 255)),
  })
  expect(audit.reasons).toContainEqual(expect.stringContaining('the service repeats pages'))
  expect(verdict.verdict).toBe('unproven')
  expect(sandbox.control.counters().requests).toBeLessThan(150)
})

test('a row whose answer comes only after the audit is not proven by it', async () => {
  const { engine, audit, idOf } = await importAndAudit({
    between: async ({ sandbox, idOf, change }) => {
      sandbox.control.delete({ resource: 'retentions', id: Number(await idOf(2)) })
      await change(2, { state: 'parked', answerId: null })
    },
  })
  const { ledger, run } = engine
  const row = await ledger.row({ run, row: 2 })
  const answer = { outcome: 'created', answerId: '999999', answer: null, at: Date.now() } as const
  await recordAnswer({ ledger, row: row!, ...answer })
  expect(await idOf(2)).toBe('999999')
  const summary = await summarize({ ledger, run })
  expect(verdictOf({ kind: kind.name, summary, audit })).toMatchObject({
    verdict: 'unproven',
    reasons: ['1 done only after the audit'],
  })
})
