import { copyFileSync, truncateSync } from 'node:fs'
import { appendFile, readFile, rm } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chooseCanary } from '../../../core/changes/send/canary.ts'
import type { ChangeKindName } from '../../../core/changes/change-kind.ts'
import { createClaimJournal, openClaimJournal, readClaims } from '../../../core/changes/claim-journal.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { closeGap } from '../../../core/changes/restored-ledger.ts'
import { summarize } from '../../../core/changes/report.ts'
import { changeRunFiles } from '../../../core/runs/run-files.ts'
import { markSeenInList } from '../../../core/changes/seen-in-list.ts'
import { sendRound } from '../../../core/changes/send/sender.ts'
import { keepStagedChanges } from '../../../core/changes/staged-changes.ts'
import type { ChangeToStage } from '../../../core/changes/stage-changes.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { openState } from '../../../core/state/open.ts'
import {
  addonRows,
  copies,
  noJournal,
  retentionRows,
  startEngine,
  startSandbox,
  temporaryFolder,
  workspace,
} from './engine.ts'
import { senderOf } from '../state/sender-of.ts'

type Engine = Awaited<ReturnType<typeof startEngine>>
const space = { workspace, mode: 'live' } as const

const rowsOf = (name: ChangeKindName, count: number): ChangeToStage[] =>
  name === 'create-addon' ? addonRows(count) : retentionRows(count)

const most = (sandbox: Sandbox, name: ChangeKindName) =>
  name === 'create-addon' ? copies(sandbox, 'addons', 'name') : copies(sandbox, 'retentions', 'number')

/** Copies the state as `sqlite3 .backup` does. */
function backUp(folder: string, to: string) {
  const db = new DatabaseSync(join(folder, 'state.db'))
  db.exec(`vacuum into '${join(to, 'state.db')}'`)
  db.close()
}

/** A run that was staged, and a way to go on with its state as it was at the last backup. */
async function startRun(name: ChangeKindName, count: number) {
  const kind = changeKinds[name]
  const sandbox = await startSandbox()
  const [folder, restored] = [await temporaryFolder(), await temporaryFolder()]
  const engine = await startEngine({ kind, sandbox, folder, limits: { inFlight: 1 } })
  const changes = rowsOf(name, count)
  await keepStagedChanges({ folder: engine.runFolder, changes: batchesOf(changes) })
  await engine.stage(changes)
  return {
    sandbox,
    engine,
    changes,
    backUp: () => backUp(folder, restored),
    restore: () => startEngine({ kind, sandbox, folder: restored, beside: engine.runFolder }),
  }
}

async function* batchesOf(changes: readonly ChangeToStage[]) {
  yield changes
}

const fix = (
  engine: Engine,
  {
    staged,
    reportedClaims = 0,
    everything = false,
  }: { staged: number; reportedClaims?: number; everything?: boolean },
) =>
  closeGap({
    ledger: engine.ledger,
    run: engine.run,
    kind: engine.kind,
    space,
    folder: engine.runFolder,
    staged,
    reportedClaims,
    everything,
    onHeld: async () => new Map(),
  })

const recorded = async ({ runFolder }: Engine) => (await readClaims(runFolder))?.recorded ?? 0

test.each(['create-addon', 'create-retention'] as const)(
  '%s: a backup from before the canary, whose rows do not come in the order of the file',
  async (name) => {
    const { sandbox, engine, ...run } = await startRun(name, 60)
    run.backUp()
    const canary = await chooseCanary({ ledger: engine.ledger, run: engine.run, kind: engine.kind, size: 3 })
    await engine.send({ rows: canary })
    const after = await run.restore()
    expect(await fix(after, { staged: 60 })).toEqual({ restaged: 0, unknown: 3 })
    expect((await after.rows()).filter(({ state }) => state === 'unknown').map(({ row }) => row)).toEqual(
      canary,
    )
    await after.finish()
    expect(canary).toContain(60)
    expect([...most(sandbox, name).values()].every((number) => number === 1)).toBe(true)
    const { counts } = await summarize({ ledger: after.ledger, run: after.run })
    // What a look finds proves that the look-up works, so nothing of a kind that can be looked up is parked.
    expect(counts).toMatchObject(name === 'create-addon' ? { done: 57, parked: 3 } : { done: 60, parked: 0 })
  },
)

test('state and Temporal put back to the same moment: the journal knows what was sent since', async () => {
  const { sandbox, engine, ...run } = await startRun('create-addon', 50)
  await engine.send({ rows: [1, 2, 3] })
  run.backUp()
  const reportedClaims = await recorded(engine)
  await engine.send({ rows: Array.from({ length: 17 }, (_, at) => at + 4) })
  const after = await run.restore()
  expect(await fix(after, { staged: 50, reportedClaims })).toEqual({ restaged: 0, unknown: 17 })
  // Fixed once, it is not behind any more.
  expect(await fix(after, { staged: 50, reportedClaims })).toEqual({ restaged: 0, unknown: 0 })
  await after.finish()
  expect([...copies(sandbox, 'addons', 'name').values()].filter((number) => number > 1)).toEqual([])
  expect((await summarize({ ledger: after.ledger, run: after.run })).counts).toMatchObject({
    done: 33,
    parked: 17,
  })
})

test.each([0, 7])(
  'a backup from before %i of the rows were staged: the others are staged again, the sent ones as unknown',
  async (stagedThen) => {
    const { sandbox, changes, engine } = await startRun('create-retention', 30)
    const backup = await startEngine({ kind: engine.kind, sandbox, folder: await temporaryFolder() })
    if (stagedThen > 0) await backup.stage(changes.slice(0, stagedThen))
    await engine.send({ rows: [3, 30] })
    const after = { ...backup, runFolder: engine.runFolder }
    const { counts: before } = await summarize({ ledger: after.ledger, run: after.run, staged: 30 })
    expect(before).toMatchObject({ staged: stagedThen, unknown: 30 - stagedThen })
    expect(await fix(after, { staged: 30 })).toEqual({ restaged: 30 - stagedThen, unknown: 2 })
    await after.finish()
    expect((await summarize({ ledger: after.ledger, run: after.run, staged: 30 })).counts).toMatchObject({
      done: 30,
      unknown: 0,
    })
    expect([...copies(sandbox, 'retentions', 'number').values()].every((number) => number === 1)).toBe(true)
  },
)

test('a ledger that lost the whole run proves nothing', async () => {
  const engine = await startEngine({ kind: changeKinds['create-addon'], sandbox: await startSandbox() })
  const summary = await summarize({ ledger: engine.ledger, run: engine.run, staged: 60 })
  expect(summary.counts.unknown).toBe(60)
  expect(verdictOf({ kind: 'create-addon', summary })).toMatchObject({
    verdict: 'unproven',
    reasons: ['60 unknown', '60 of these staged by the run but missing from the ledger (state.db)'],
  })
})

test('what lies beside a run is cut short: nothing is staged from it, and the sentence names the file', async () => {
  const { engine } = await startRun('create-addon', 5)
  const path = join(engine.runFolder, changeRunFiles.stagedChanges)
  const lines = (await readFile(path, 'utf8')).split('\n')
  truncateSync(path, lines.slice(0, 3).join('\n').length + 1)
  const empty = await startEngine({ kind: engine.kind, sandbox: await startSandbox() })
  await expect(fix({ ...empty, runFolder: engine.runFolder }, { staged: 5 })).rejects.toThrow(
    `${path} is missing or cut short`,
  )
})

test('where the journal was lost or put back too, all that looks unsent is unknown', async () => {
  const { engine, ...run } = await startRun('create-addon', 10)
  await engine.send({ rows: [1] })
  run.backUp()
  await engine.send({ rows: [2, 3] })
  const reportedClaims = await recorded(engine)
  const journal = join(engine.runFolder, changeRunFiles.claims)
  const after = await run.restore()
  await rm(journal)
  expect(await fix(after, { staged: 10 })).toEqual({ restaged: 0, unknown: 9 })
  const second = await run.restore()
  await rm(journal)
  await createClaimJournal(engine.runFolder)
  await second.ledger.moveAll({ run: second.run, from: 'unknown', patch: { state: 'staged' } })
  expect(await fix(second, { staged: 10, reportedClaims })).toEqual({ restaged: 0, unknown: 9 })
})

test('a kill at any moment is never taken for a ledger that was put back', { timeout: 60_000 }, async () => {
  const kind = changeKinds['create-addon']
  const rows = Number(process.env['KILL_ROWS'] ?? 20)
  const sandbox = await startSandbox()
  const folder = await temporaryFolder()
  const engine = await startEngine({ kind, sandbox, folder })
  await engine.stage(addonRows(rows))
  await using journal = await openClaimJournal(engine.runFolder)
  let found = 0
  let kills = 0
  /** What a SIGKILL leaves now: nothing else runs between the two copies. */
  const kill = async () => {
    const left = await temporaryFolder()
    const reportedClaims = journal.recorded
    copyFileSync(join(engine.runFolder, changeRunFiles.claims), join(left, changeRunFiles.claims))
    backUp(folder, left)
    kills += 1
    const state = await openState({ folder: left })
    const after = { ...engine, ledger: state.ledger, runFolder: left }
    const { restaged, unknown } = await fix(after, { staged: rows, reportedClaims })
    found += restaged + unknown
    await state.close()
  }
  const killing: Promise<void>[] = []
  await sendRound({
    ledger: engine.ledger,
    run: engine.run,
    kind,
    billing: engine.billing,
    limits: { inFlight: 4, maxFailureShare: 1 },
    breakers: {},
    ms: 60_000,
    signal: new AbortController().signal,
    journal: {
      ...journal,
      // Between the claim and the journal, and between the journal and the request.
      record: async (claim) => {
        killing.push(kill())
        await journal.record(claim)
        killing.push(kill())
      },
    },
  })
  await Promise.all(killing)
  expect({ kills, found }).toEqual({ kills: 2 * rows, found: 0 })
})

test('a line that a crash cut short is no claim, and the next one begins on its own', async () => {
  const folder = await temporaryFolder()
  await createClaimJournal(folder)
  const first = await openClaimJournal(folder)
  await Promise.all([1, 2, 3].map((row) => first.record({ row, claims: 1, at: 5 })))
  await first[Symbol.asyncDispose]()
  await appendFile(join(folder, changeRunFiles.claims), '17 ')
  const second = await openClaimJournal(folder)
  expect(second.recorded).toBe(3)
  await second.record({ row: 2, claims: 2, at: 6 })
  await second[Symbol.asyncDispose]()
  const claims = await readClaims(folder)
  expect(claims?.recorded).toBe(4)
  expect([...(claims?.byRow.values() ?? [])]).toEqual([
    { row: 1, claims: 1, at: 5 },
    { row: 2, claims: 2, at: 6 },
    { row: 3, claims: 1, at: 5 },
  ])
})

test('a claim that the disk does not take is never sent, and stops the run', async () => {
  const sandbox = await startSandbox()
  const engine = await startEngine({ kind: changeKinds['create-addon'], sandbox })
  await engine.stage(addonRows(3))
  const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  const journal = { ...noJournal, record: () => Promise.reject(full) }
  await expect(engine.send({ journal })).rejects.toBe(full)
  expect(copies(sandbox, 'addons', 'name').size).toBe(0)
  expect((await engine.rows()).map(({ state, sends }) => [state, sends])).toEqual([
    ['staged', 0],
    ['staged', 0],
    ['staged', 0],
  ])
})

test('retentions: the list shows what was sent since everything was put back', async () => {
  const { sandbox, engine, ...run } = await startRun('create-retention', 20)
  run.backUp()
  await engine.send({ rows: [2, 19] })
  const after = await run.restore()
  const { ledger, billing } = after
  const bound = { billing, newestBefore: undefined, readLagMs: 60_000, concurrency: 2 }
  expect(await markSeenInList({ ledger, run: after.run, ...space, ...bound })).toBe(2)
  await after.finish()
  expect([...copies(sandbox, 'retentions', 'number').values()].every((number) => number === 1)).toBe(true)
  expect((await summarize({ ledger, run: after.run })).counts).toMatchObject({ done: 20 })
})

test('a person says that everything was put back: nothing that looks unsent is sent blindly', async () => {
  const { engine } = await startRun('create-addon', 4)
  await engine.send({ rows: [1] })
  expect(await fix(engine, { staged: 4, everything: true })).toEqual({ restaged: 0, unknown: 3 })
  expect((await engine.rows()).map(({ state }) => state)).toEqual(['done', 'unknown', 'unknown', 'unknown'])
})

/** A run of one retention that was claimed twice, whose ledger was put back to where its first send was known. */
async function claimedTwice(then: 'staged' | 'unknown') {
  const { engine } = await startRun('create-retention', 1)
  const [row] = await engine.rows()
  const { ledger, run } = engine
  const id = row?.id ?? 0
  await ledger.claim({ sender: await senderOf(ledger, run), id, sends: 0, at: 1_000 })
  const patch = { state: then, unknownSince: 1_000, lookups: 2, checkedAt: 2_000 } as const
  await ledger.move({ id, from: ['sending'], patch })
  const claimAgain = async (times: number) => {
    await using journal = await openClaimJournal(engine.runFolder)
    for (let claims = 1; claims <= 1 + times; claims += 1)
      await journal.record({ row: 1, claims, at: claims })
  }
  const now = 1_000_000
  const { billing, kind, runFolder: folder } = engine
  const gap = { ledger, run, kind, space, folder, staged: 1, onHeld: async () => new Map(), now: () => now }
  return { engine, claimAgain, now, billing, gap, row: async () => await ledger.row({ run, row: 1 }) }
}

test.each(['staged', 'unknown'] as const)(
  'every claim since the backup counts as a send that may take effect from now on, also of a row that was sent before and is %s',
  async (then) => {
    const { claimAgain, gap, row, now } = await claimedTwice(then)
    await claimAgain(2)
    expect(await closeGap(gap)).toEqual({ restaged: 0, unknown: 1 })
    expect(await row()).toMatchObject({
      state: 'unknown',
      outcome: 'restored',
      claims: 3,
      sends: 3,
      lookups: 0,
      unknownSince: now,
    })
  },
)

test('a row that was sent before counts one send more when a person says that everything was put back', async () => {
  const { gap, row } = await claimedTwice('staged')
  expect(await closeGap({ ...gap, everything: true })).toEqual({ restaged: 0, unknown: 1 })
  expect(await row()).toMatchObject({ state: 'unknown', sends: 2, lookups: 0 })
})

test('a journal that was put back gets the claims that the ledger knows, so that a ledger put back later is noticed', async () => {
  const { engine, ...run } = await startRun('create-addon', 5)
  run.backUp()
  await engine.send({ rows: [2, 4] })
  await rm(join(engine.runFolder, changeRunFiles.claims))
  await createClaimJournal(engine.runFolder)
  await fix(engine, { staged: 5 })
  const after = await run.restore()
  expect(await fix(after, { staged: 5 })).toEqual({ restaged: 0, unknown: 2 })
  expect((await after.rows()).map(({ state }) => state)).toEqual([
    'staged',
    'unknown',
    'staged',
    'unknown',
    'staged',
  ])
})

test('what nobody could know is remembered beside the run, so that a ledger put back once more does not call it unsent', async () => {
  const { engine, ...run } = await startRun('create-addon', 3)
  run.backUp()
  await engine.send({ rows: [1, 2, 3] })
  const claims = join(engine.runFolder, changeRunFiles.claims)
  await rm(claims)
  await createClaimJournal(engine.runFolder)
  const first = await run.restore()
  expect(await fix(first, { staged: 3, everything: true })).toEqual({ restaged: 0, unknown: 3 })
  const second = await startEngine({ ...engine, sandbox: run.sandbox, beside: engine.runFolder })
  await second.stage(addonRows(3))
  expect(await fix(second, { staged: 3 })).toEqual({ restaged: 0, unknown: 3 })
})

test('where ledger and journal were lost, no subscription is resumed more often than its attempts', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 40, customers: 10, plans: 3 },
    needsAttention: 1,
    faults: [{ kind: 'fallBack', on: 'POST /subscriptions/{id}/resume/' }],
  })
  const [folder, restored] = [await temporaryFolder(), await temporaryFolder()]
  const engine = await startEngine({ kind: changeKinds['resume-subscription'], sandbox, folder })
  const [text = ''] = sandbox.control.records({ resource: 'subscriptions' })
  const { id, customer } = JSON.parse(text) as { id: string; customer: string }
  await engine.stage([{ row: 1, body: { id, customer } }])
  backUp(folder, restored)
  const attempts = { most: 3, waitsMs: [0] }
  const resumes = () => sandbox.control.requests().filter(({ method }) => method === 'POST').length
  const finish = async (run: Engine) =>
    await expect
      .poll(async () => {
        await run.settle({ attempts })
        await run.send()
        return (await run.rows())[0]
      })
      .toMatchObject({ state: 'parked', outcome: 'attemptsUsedUp' })
  await finish(engine)
  expect(resumes()).toBe(3)
  const reportedClaims = await recorded(engine)
  const after = await startEngine({
    kind: changeKinds['resume-subscription'],
    sandbox,
    folder: restored,
    beside: engine.runFolder,
  })
  await rm(join(engine.runFolder, changeRunFiles.claims))
  await fix(after, { staged: 1, reportedClaims })
  await finish(after)
  expect(resumes()).toBe(3)
})

test('where the journal was lost, a resume that was in doubt may have been sent again since, and keeps its attempts', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 40, customers: 10, plans: 3 },
    needsAttention: 1,
    faults: [{ kind: 'fallBack', on: 'POST /subscriptions/{id}/resume/' }],
  })
  const [folder, restored] = [await temporaryFolder(), await temporaryFolder()]
  const kind = changeKinds['resume-subscription']
  const engine = await startEngine({ kind, sandbox, folder })
  const [text = ''] = sandbox.control.records({ resource: 'subscriptions' })
  const { id, customer } = JSON.parse(text) as { id: string; customer: string }
  await engine.stage([{ row: 1, body: { id, customer } }])
  await engine.send()
  backUp(folder, restored)
  const attempts = { most: 2, waitsMs: [0] }
  const resumes = () => sandbox.control.requests().filter(({ method }) => method === 'POST').length
  const finish = async (run: Engine) =>
    await expect
      .poll(async () => {
        await run.settle({ attempts })
        await run.send()
        return (await run.rows())[0]
      })
      .toMatchObject({ state: 'parked', outcome: 'attemptsUsedUp' })
  await finish(engine)
  expect(resumes()).toBe(2)
  const after = await startEngine({ kind, sandbox, folder: restored, beside: engine.runFolder })
  await rm(join(engine.runFolder, changeRunFiles.claims))
  expect(await fix(after, { staged: 1 })).toEqual({ restaged: 0, unknown: 1 })
  await finish(after)
  expect(resumes()).toBe(2)
})
