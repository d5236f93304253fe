import { setTimeout as wait } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { takeRight } from '../../../core/changes/send/send-right.ts'
import { leaseOf } from '../state/sender-of.ts'
import {
  addonRows,
  claimFirst,
  copies,
  refusedFrom,
  retentionRows,
  startEngine,
  startRun,
  startSandbox,
} from './engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { ReportCounts } from '../../../core/runs/view/counts.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { OldLedgerError } from '../../../core/state/errors.ts'

const kind = changeKinds['create-retention']
const addon = changeKinds['create-addon']
const settleMs = 20
const limits = { concurrency: 1, maxFailureShare: 0.5 }

const refused = (rows: ReturnType<typeof retentionRows>, breakerKey: string) =>
  refusedFrom(1, rows).map((row) => ({ ...row, breakerKey }))

test('a canary whose breaker is open waits for its trials, and gives up after the last, while others are staged', async () => {
  const bad = refused(retentionRows(20), 'biller_issue')
  const good = retentionRows(25)
    .slice(20)
    .map((row) => ({ ...row, breakerKey: 'gateway_issue' }))
  const { engine } = await startRun(kind, [...bad, ...good], { settleMs, limits })
  const rows = [...bad.map(({ row }) => row), 21]
  const { breakers, ...step } = await engine.segment({ rows, breakerWaitsMs: [60_000, 20, 20] })
  expect(step).toMatchObject({ ended: 'breaker', counts: { rejected: 10, done: 1 } })
  const waitMs = (step.nextAt ?? 0) - (step.endedAt ?? 0)
  expect(waitMs).toBeGreaterThan(30_000)
  expect(waitMs).toBeLessThanOrEqual(60_000)
  const last = await engine.segment({ rows, breakers, breakerWaitsMs: [20, 20, 20] })
  expect(last).toMatchObject({ ended: 'breaker', givenUp: ['biller_issue'], counts: { rejected: 13 } })
  expect(last).not.toHaveProperty('nextAt')
})

test('a trial that becomes due while the end of a round is worked out is sent', async () => {
  const { engine } = await startRun(kind, refused(retentionRows(12), 'biller_issue'), { settleMs, limits })
  const { ledger } = engine
  const nextDue = ledger.nextDue.bind(ledger)
  ledger.nextDue = async (options) => {
    const due = await nextDue(options)
    await wait(60)
    return due
  }
  const step = await engine.segment({ breakerWaitsMs: [50] })
  expect(step).toMatchObject({ ended: 'breaker', counts: { rejected: 11, staged: 1 } })
})

test('a row whose reply is lost while another one is looked up is looked up, too, before the segment ends', async () => {
  const lost = { kind: 'reset', effect: 'done', on: 'POST /retentions/', requests: [2, 3] } as const
  const { engine } = await startRun(kind, retentionRows(3), { faults: [lost], settleMs })
  // Lookups wait for a change that is done.
  await engine.send({ rows: [3] })
  let at = Date.now()
  let recorded = 0
  const [first, passed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ledger: Ledger = {
    ...engine.ledger,
    now: () => at,
    // The second row is unknown, and not taken in yet, when the lookup of the first one is due.
    async breakerEvents(of) {
      if (recorded === 1) {
        at += 10 * settleMs
        await passed.promise
      }
      return await engine.ledger.breakerEvents(of)
    },
    async *rows(which) {
      yield* engine.ledger.rows(which)
      if (recorded === 1 && which.state === 'unknown') passed.resolve()
    },
  }
  const onlyThen: ChangeKind = {
    ...kind,
    async send(request) {
      if (request.body['number'] !== retentionRows(1)[0]?.body['number']) await first.promise
      return await kind.send(request)
    },
  }
  const onProgress = ({ unknown }: ReportCounts) => {
    if (unknown === 0) return
    recorded += 1
    first.resolve()
  }
  const step = await engine.segment({ ledger, kind: onlyThen, onProgress })
  expect(step).toMatchObject({ ended: 'finished', counts: { done: 3, unknown: 0 } })
})

test('a breaker that has given up is the end, although another one is open that has nothing left to try', async () => {
  const [first, others] = [retentionRows(10), retentionRows(30).slice(10)]
  const rows = [...refused(first, 'biller_issue'), ...refused(others, 'gateway_issue')]
  const { engine } = await startRun(kind, rows, { settleMs, limits })
  const step = await engine.segment({ breakerWaitsMs: [20, 20, 20] })
  expect(step).toMatchObject({ ended: 'breaker', givenUp: ['gateway_issue'], counts: { rejected: 23 } })
  expect(step).not.toHaveProperty('nextAt')
})

test('a change that the service turned away does not count for maxChanges, and is sent again', async () => {
  // Addons: one that might have been done would be left to a person.
  const turnAway = { kind: 'error', status: 429, on: 'POST /addons/', requests: [1] } as const
  const { sandbox, engine } = await startRun(addon, addonRows(4), { faults: [turnAway], settleMs })
  const step = await engine.segment({ limits: { concurrency: 4, maxChanges: 2 } })
  expect(step).toMatchObject({ ended: 'maxChanges', counts: { done: 2, staged: 2 } })
  expect([...copies(sandbox, 'addons', 'name').values()]).toEqual([1, 1])
  expect((await engine.rows()).map(({ sends }) => sends).toSorted((a, b) => a - b)).toEqual([0, 0, 1, 1])
})

test('a lookup that finds nothing waits for the first change of its run that is done, so that its control can be found', async () => {
  const slow = { kind: 'latency', ms: 300, on: 'POST /retentions/' } as const
  const { engine } = await startRun(kind, retentionRows(3), { faults: [slow], settleMs })
  await claimFirst(engine)
  expect(await engine.finish()).toBe('finished')
  expect(await engine.rows()).toMatchObject([1, 2, 3].map(() => ({ state: 'done', outcome: 'created' })))
})

test.each([1, 4])(
  'while %i changes at once wait for their answers, nothing asks the ledger over and over',
  async (concurrency) => {
    const slow = { kind: 'latency', ms: 500, on: 'POST /retentions/' } as const
    const how = { faults: [slow], settleMs, limits: { concurrency } }
    const { engine } = await startRun(kind, retentionRows(2), how)
    let asked = 0
    const now = () => {
      asked += 1
      return engine.ledger.now()
    }
    const step = await engine.segment({ ledger: { ...engine.ledger, now } })
    expect(step).toMatchObject({ ended: 'finished', counts: { done: 2 } })
    expect(asked).toBeLessThan(100)
  },
)

test('the progress of a segment has each row once, however long the segment takes', async () => {
  const { engine } = await startRun(kind, retentionRows(12), {
    faults: [{ kind: 'latency', ms: 20, on: 'POST /retentions/' }],
    settleMs,
    concurrency: 1,
  })
  const real = performance.now.bind(performance)
  let aheadMs = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => real() + aheadMs)
  onTestFinished(() => clock.mockRestore())
  const seen: ReportCounts[] = []
  const onProgress = (counts: ReportCounts) => {
    seen.push(counts)
    aheadMs += 1_500
  }
  await engine.segment({ ms: Infinity, onProgress })
  // Each answer moves one row from those that are staged to those that are done.
  expect(seen.map(({ staged, done, unknown }) => [staged, done, unknown])).toEqual(
    Array.from({ length: 13 }, (_, done) => [12 - done, done, 0]),
  )
})

const count = 4

/** A run whose ledger forgets, after a number of answers, what it knows of its first row: a failover to a replica that lags. */
async function startFailingOver(after: number) {
  const [sandbox, folder] = [await startSandbox(), await temporaryFolder()]
  let answered = 0
  const failsOver: ChangeKind = {
    ...addon,
    async send(request) {
      const stored = await addon.send(request)
      answered += 1
      if (answered === after) putBack(folder)
      return stored
    },
  }
  const engine = await startEngine({ kind: failsOver, sandbox, folder, concurrency: 1 })
  await engine.stage(addonRows(count))
  return { ...engine, sandbox }
}

function putBack(folder: string) {
  const db = new DatabaseSync(join(folder, 'state.db'))
  db.exec(`update changes set state = 'staged', claims = 0, sends = 0, outcome = null, answer_id = null, answer = null,
    answered_at = null, closed_at = null, sent_at = null where row = 1`)
  db.close()
}

test('a row that the ledger has forgotten while its run is sending is not sent again, now or by the next attempt', async () => {
  const { sandbox, send } = await startFailingOver(count)
  await expect(send()).rejects.toBeInstanceOf(OldLedgerError)
  await expect(send()).rejects.toBeInstanceOf(OldLedgerError)
  expect([...copies(sandbox, 'addons', 'name').values()]).toEqual(Array.from({ length: count }, () => 1))
})

test('a row that the ledger has forgotten since an earlier attempt is not sent again either', async () => {
  const { sandbox, send } = await startFailingOver(2)
  await send({ rows: [1] })
  await send({ rows: [2] }).catch(() => undefined)
  await expect(send()).rejects.toBeInstanceOf(OldLedgerError)
  expect(copies(sandbox, 'addons', 'name').get('Addon 1')).toBe(1)
})

test('a row that was looked up while a page of unknown rows was worked off is neither looked up nor counted again', async () => {
  const { engine } = await startRun(addon, addonRows(1))
  const { ledger } = engine
  await claimFirst(engine)
  /** Gives each row once more, as it was when the page was read. */
  async function* rows(which: Parameters<Ledger['rows']>[0]) {
    for await (const one of ledger.rows(which)) yield* [one, one]
  }
  let counts: ReportCounts | undefined
  await engine.segment({
    limits: { concurrency: 1 },
    lookupsOnly: true,
    ledger: { ...ledger, rows },
    onProgress: (now) => (counts = now),
  })
  expect(counts).toMatchObject({ parked: 1, unknown: 0 })
})

test('a row that another worker has just looked up is looked up again when that is due, not left unknown', async () => {
  const { engine } = await startRun(kind, retentionRows(1), { settleMs, limits })
  const { ledger, run } = engine
  await claimFirst(engine)
  const sender = await takeRight({ ledger, run, lease: leaseOf(run) })
  await wait(2 * settleMs)
  /** The other worker finds nothing, once this one has read the page on which the row is due. */
  async function* rows(which: Parameters<Ledger['rows']>[0]) {
    for await (const row of ledger.rows(which)) {
      const patch = { lookups: 1, checkedAt: ledger.now() }
      if (row.lookups === 0) await ledger.move({ id: row.id, from: ['unknown'], patch })
      yield row
    }
  }
  const step = await engine.settle({ ledger: { ...ledger, rows }, sender })
  expect(step).toMatchObject({ ended: 'finished', counts: { unknown: 0, parked: 1 } })
})
