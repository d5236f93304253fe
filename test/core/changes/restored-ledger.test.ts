import { copyFileSync, truncateSync } from 'node:fs'
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chooseCanary } from '../../../core/changes/send/canary.ts'
import type { ChangeKind, ChangeKindName } from '../../../core/changes/change-kind.ts'
import { createClaimJournal, openClaimJournal, readClaims } from '../../../core/changes/claim-journal.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { closeUntried } from '../../../core/changes/reconcile/close-remaining.ts'
import { closeGap, markClaimed, moveToUnknown } from '../../../core/changes/restored-ledger.ts'
import { summarize } from '../../../core/changes/report.ts'
import { changeRunFiles } from '../../../core/runs/run-files.ts'
import { markSeenInList } from '../../../core/changes/seen-in-list.ts'
import { keepStagedChanges } from '../../../core/changes/staged-changes.ts'
import { type ChangeToStage, withKey } from '../../../core/changes/stage-changes.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { openState } from '../../../core/state/open.ts'
import {
  addonRows,
  copies,
  noJournal,
  retentionRows,
  stageChanges,
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
  const engine = await startEngine({ kind, sandbox, folder, limits: { concurrency: 1 } })
  const changes = rowsOf(name, count)
  await keepStagedChanges({ folder: engine.runFolder, changes: batchesOf(kind, changes) })
  await engine.stage(changes)
  return {
    sandbox,
    engine,
    changes,
    restored,
    backUp: () => backUp(folder, restored),
    restore: () => startEngine({ kind, sandbox, folder: restored, beside: engine.runFolder }),
  }
}

/** A staged resume that the service takes and that always falls back, and a way to restore its ledger. */
async function startFallingBack({ most }: { most: number }) {
  const kind = changeKinds['resume-subscription']
  const sandbox = await startSandbox({
    counts: { subscriptions: 40, customers: 10, plans: 3 },
    needsAttention: 1,
    faults: [{ kind: 'fallBack', on: 'POST /subscriptions/{id}/resume/' }],
  })
  const [folder, restored] = [await temporaryFolder(), await temporaryFolder()]
  const engine = await startEngine({ kind, sandbox, folder })
  const [text = ''] = sandbox.control.records({ resource: 'subscriptions' })
  const { id, customer } = JSON.parse(text) as { id: string; customer: string }
  await engine.stage([{ row: 1, body: { id, customer } }])
  return {
    engine,
    backUp: () => backUp(folder, restored),
    restore: () => startEngine({ kind, sandbox, folder: restored, beside: engine.runFolder }),
    resumes: () => sandbox.control.requests().filter(({ method }) => method === 'POST').length,
    /** Resumes it until its attempts are used up. */
    finish: async (run: Engine) =>
      await expect
        .poll(async () => {
          await run.settle({ attempts: { most, waitsMs: [0] } })
          await run.send()
          return (await run.rows())[0]
        })
        .toMatchObject({ state: 'parked', outcome: 'attemptsUsedUp' }),
  }
}

async function* batchesOf(kind: ChangeKind, changes: readonly ChangeToStage[]) {
  yield changes.map((change) => withKey({ kind, change }))
}

const fix = (
  engine: Engine,
  {
    staged,
    reportedClaims = 0,
    everything = false,
    isCopy = false,
  }: { staged: number; reportedClaims?: number; everything?: boolean; isCopy?: boolean },
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
    isCopy,
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
  await engine.send({
    limits: { concurrency: 4, maxFailureShare: 1 },
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
  const bound = { billing, newestBefore: undefined, readLagMs: 60_000 }
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

test.each([
  { journal: 'is lost', kept: 0, isCopy: false },
  { journal: 'is older than the last claims', kept: 1, isCopy: false },
  { journal: 'is a copy that lacks the last claims', kept: 1, isCopy: true },
  {
    journal: 'is a copy that lacks the last claim, as the end of the run sees',
    kept: 2,
    isCopy: true,
    ends: true,
  },
])(
  'the ledger was put back and the journal $journal: no subscription is resumed more often than its attempts',
  async ({ kept, isCopy, ends = false }) => {
    const { engine, backUp, restore, resumes, finish } = await startFallingBack({ most: 3 })
    backUp()
    await finish(engine)
    expect(resumes()).toBe(3)
    const reportedClaims = await recorded(engine)
    const after = await restore()
    const path = join(engine.runFolder, changeRunFiles.claims)
    const [header, ...claims] = (await readFile(path, 'utf8')).split('\n')
    if (kept === 0) await rm(path)
    else await writeFile(path, `${[header, ...claims.slice(0, kept)].join('\n')}\n`)
    const { ledger, run, runFolder } = after
    if (ends) await markClaimed({ ledger, run, folder: runFolder, isCopy })
    else await fix(after, { staged: 1, reportedClaims, isCopy })
    await finish(after)
    expect(resumes()).toBe(3)
  },
)

test('where the journal was lost, a resume that was in doubt may have been sent again since, and keeps its attempts', async () => {
  const { engine, backUp, restore, resumes, finish } = await startFallingBack({ most: 2 })
  await engine.send()
  backUp()
  await finish(engine)
  expect(resumes()).toBe(2)
  const after = await restore()
  await rm(join(engine.runFolder, changeRunFiles.claims))
  expect(await fix(after, { staged: 1 })).toEqual({ restaged: 0, unknown: 1 })
  await finish(after)
  expect(resumes()).toBe(2)
})

test.each([
  ['none of its claims, because its worker was lost', false],
  ['the claims of its first seconds', true],
])(
  'a copy of the journal with %s makes nothing unknown if the ledger has them all',
  async (_what, isPart) => {
    const { engine } = await startRun('create-retention', 20)
    await engine.send({ rows: [1, 2] })
    const copy = await readFile(join(engine.runFolder, changeRunFiles.claims), 'utf8')
    await engine.send({ rows: [3, 4, 5] })
    const reportedClaims = await recorded(engine)
    expect(reportedClaims).toBe(5)
    const path = join(engine.runFolder, changeRunFiles.claims)
    await (isPart ? writeFile(path, copy) : rm(path))
    const gap = { staged: 20, isCopy: true, reportedClaims }
    expect(await fix(engine, gap)).toEqual({ restaged: 0, unknown: 0 })
    expect(await recorded(engine)).toBe(5)
  },
)

test('a ledger that lacks a claim of the copy of its journal may lack others, too: all that is open is unknown', async () => {
  const { engine, ...run } = await startRun('create-addon', 20)
  run.backUp()
  await engine.send({ rows: [1, 2] })
  const copy = await readFile(join(engine.runFolder, changeRunFiles.claims), 'utf8')
  await engine.send({ rows: [3, 4, 5] })
  await writeFile(join(engine.runFolder, changeRunFiles.claims), copy)
  const after = await run.restore()
  expect(await fix(after, { staged: 20, isCopy: true, reportedClaims: 2 })).toEqual({
    restaged: 0,
    unknown: 20,
  })
  expect(await fix(after, { staged: 20, isCopy: true, reportedClaims: 2 })).toEqual({
    restaged: 0,
    unknown: 0,
  })
})

test('a ledger and a copy of the journal with fewer claims than were reported: all that is open is unknown, once', async () => {
  const { sandbox, engine, ...run } = await startRun('create-retention', 20)
  await engine.send({ rows: [1, 2] })
  run.backUp()
  const copy = await readFile(join(engine.runFolder, changeRunFiles.claims), 'utf8')
  await engine.send({ rows: [3, 4, 5] })
  const reportedClaims = await recorded(engine)
  await writeFile(join(engine.runFolder, changeRunFiles.claims), copy)
  const after = await run.restore()
  const gap = { staged: 20, isCopy: true, reportedClaims }
  expect(await fix(after, gap)).toEqual({ restaged: 0, unknown: 18 })
  expect(await fix(after, gap)).toEqual({ restaged: 0, unknown: 0 })
  await after.finish()
  expect(await fix(after, gap)).toEqual({ restaged: 0, unknown: 0 })
  expect([...most(sandbox, 'create-retention').values()].every((number) => number === 1)).toBe(true)
  expect((await summarize({ ledger: after.ledger, run: after.run })).counts).toMatchObject({ done: 20 })
})

test('a ledger from before the changes were staged shows that a copy of the journal may lack claims, too', async () => {
  const { engine, ...run } = await startRun('create-addon', 10)
  run.backUp()
  await engine.send({ rows: [1] })
  await rm(join(engine.runFolder, changeRunFiles.claims))
  const db = new DatabaseSync(join(run.restored, 'state.db'))
  db.exec('delete from changes where row > 5')
  db.close()
  const after = await run.restore()
  expect(await fix(after, { staged: 10, isCopy: true })).toEqual({ restaged: 5, unknown: 10 })
})

test('what another run must not take over, a copy of the journal tells also if it lacks the last claims', async () => {
  const { engine, ...run } = await startRun('create-addon', 6)
  run.backUp()
  await engine.send({ rows: [1] })
  const copy = await readFile(join(engine.runFolder, changeRunFiles.claims), 'utf8')
  await engine.send({ rows: [2] })
  await writeFile(join(engine.runFolder, changeRunFiles.claims), copy)
  const { ledger, run: name, runFolder: folder, ...after } = await run.restore()
  expect(await markClaimed({ ledger, run: name, folder, isCopy: true })).toBe(6)
  expect((await after.rows()).map(({ state }) => state)).not.toContain('staged')
})

test.each([0, 1, 2])(
  'a repair that ends after %i writes is completed by the next attempt: the ledger still shows that it was restored',
  async (writes) => {
    const { engine, ...run } = await startRun('create-addon', 20)
    run.backUp()
    await engine.send({ rows: [1, 2] })
    const copy = await readFile(join(engine.runFolder, changeRunFiles.claims), 'utf8')
    await engine.send({ rows: [3, 4, 5] })
    await writeFile(join(engine.runFolder, changeRunFiles.claims), copy)
    const after = await run.restore()
    const gap = { staged: 20, isCopy: true, reportedClaims: 2 }
    await expect(fix({ ...after, ledger: endingAfter(writes, after.ledger) }, gap)).rejects.toThrow('away')
    await fix(after, gap)
    expect(new Set((await after.rows()).map(({ state }) => state))).toEqual(new Set(['unknown']))
  },
)

test('what another run holds is not sent blindly if the run that had its key may have sent it since the backup', async () => {
  const { engine } = await startRun('create-addon', 1)
  const { ledger, run, kind } = engine
  await closeUntried({ ledger, run, why: 'stopped' })
  await stageChanges({ ledger, run: 'run-2', kind, changes: addonRows(1) })
  const heldBy2 = async () => (await ledger.row({ run: 'run-2', row: 1 }))!
  // A restored ledger has the change as closed that the run has sent. Until it is looked up, it has no key.
  await moveToUnknown({ ledger, row: (await engine.rows())[0]!, now: () => 1 })
  const { id, state } = await heldBy2()
  expect(state).toBe('unknown')
  expect(await engine.rows()).toMatchObject([{ state: 'unknown', holdsKey: 0, sends: 1 }])
  // The holder is proven absent. Then it may have been dropped and the other one sent, before the next restore.
  await ledger.move({ id, from: ['unknown'], patch: { state: 'staged', outcome: 'absent' } })
  await rm(join(engine.runFolder, changeRunFiles.claims))
  await fix(engine, { staged: 1 })
  expect(await heldBy2()).toMatchObject({ state: 'unknown', outcome: 'restored' })
  expect(await engine.rows()).toMatchObject([{ state: 'unknown', holdsKey: 0, sends: 1 }])
})

test('another run takes nothing over of a run whose repair was interrupted', async () => {
  const { engine, ...run } = await startRun('create-addon', 6)
  run.backUp()
  await engine.send({ rows: [1] })
  const copy = await readFile(join(engine.runFolder, changeRunFiles.claims), 'utf8')
  await engine.send({ rows: [2] })
  await writeFile(join(engine.runFolder, changeRunFiles.claims), copy)
  const { ledger, run: name, runFolder: folder, ...after } = await run.restore()
  const marking = { run: name, folder, isCopy: true }
  await expect(markClaimed({ ...marking, ledger: endingAfter(1, ledger) })).rejects.toThrow('away')
  await markClaimed({ ...marking, ledger })
  expect((await after.rows()).map(({ state }) => state)).not.toContain('staged')
})

/** A ledger whose store is away after a number of writes. */
function endingAfter(writes: number, ledger: Engine['ledger']): Engine['ledger'] {
  let left = writes
  const counted =
    <Options, Result>(write: (options: Options) => Promise<Result>) =>
    async (options: Options): Promise<Result> => {
      left -= 1
      if (left < 0) throw new Error('away')
      return await write(options)
    }
  return {
    ...ledger,
    stage: counted((options) => ledger.stage(options)),
    move: counted((options) => ledger.move(options)),
    markRestored: counted((options) => ledger.markRestored(options)),
  }
}

test('forgotten resumes count for every subscription, also for those that are staged again after a repair was lost', async () => {
  const kind = changeKinds['resume-subscription']
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const changes = [1, 2].map((row) => ({ row, body: { id: `sub_${row}`, customer: 'cus_1' } }))
  await keepStagedChanges({ folder: engine.runFolder, changes: batchesOf(kind, changes) })
  await engine.stage(changes.slice(0, 1))
  await rm(join(engine.runFolder, changeRunFiles.claims), { force: true })
  const gap = { staged: 2, reportedClaims: 3, isCopy: true }
  const lost = fix({ ...engine, ledger: endingAfter(1, engine.ledger) }, gap)
  await expect(lost).rejects.toThrow('away')
  await fix(engine, gap)
  expect((await engine.rows()).map(({ state, sends }) => [state, sends])).toEqual([
    ['unknown', 3],
    ['unknown', 3],
  ])
})

test('a resume that a ledger has lost counts what the journal has of it, and what the journal may lack', async () => {
  const kind = changeKinds['resume-subscription']
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const changes = [1, 2].map((row) => ({ row, body: { id: `sub_${row}`, customer: 'cus_1' } }))
  await keepStagedChanges({ folder: engine.runFolder, changes: batchesOf(kind, changes) })
  await using journal = await openClaimJournal(engine.runFolder)
  await journal.record({ row: 2, claims: 1, at: 1 })
  await fix(engine, { staged: 2, reportedClaims: 2 })
  expect((await engine.rows()).map(({ state, sends }) => [state, sends])).toEqual([
    ['unknown', 1],
    ['unknown', 2],
  ])
})

test.each([0, 1, 2])(
  'of rows that a ledger has lost, none is sent blindly although the first worker that stages them again is lost after %i writes',
  async (writes) => {
    const { sandbox, changes, engine } = await startRun('create-addon', 20)
    const backup = await startEngine({ kind: engine.kind, sandbox, folder: await temporaryFolder() })
    await backup.stage(changes.slice(0, 7))
    await engine.send({ rows: [3, 15] })
    // The copy of the journal is from before.
    await rm(join(engine.runFolder, changeRunFiles.claims))
    const after = { ...backup, runFolder: engine.runFolder }
    const gap = { staged: 20, isCopy: true }
    const lost = fix({ ...after, ledger: endingAfter(writes, after.ledger) }, gap)
    await lost.catch(() => undefined)
    await fix(after, gap)
    expect((await after.rows()).filter(({ state }) => state !== 'unknown')).toEqual([])
    await after.finish()
    expect([...copies(sandbox, 'addons', 'name').values()].filter((number) => number > 1)).toEqual([])
  },
)

test.each([0, 1, 3])(
  'a repair that is lost after %i writes leaves the next worker what shows that claims are missing',
  async (writes) => {
    const { sandbox, engine, ...run } = await startRun('create-addon', 20)
    run.backUp()
    await engine.send({ rows: [3, 15] })
    const reportedClaims = await recorded(engine)
    await rm(join(engine.runFolder, changeRunFiles.claims))
    const after = await run.restore()
    const gap = { staged: 20, isCopy: true, reportedClaims }
    const lost = fix({ ...after, ledger: endingAfter(writes, after.ledger) }, gap)
    await lost.catch(() => undefined)
    await fix(after, gap)
    expect((await after.rows()).filter(({ state }) => state !== 'unknown')).toEqual([])
    await after.finish()
    expect([...copies(sandbox, 'addons', 'name').values()].filter((number) => number > 1)).toEqual([])
  },
)

test('a lost journal is noticed again by the next worker if the first one is lost before it has marked every row', async () => {
  const { engine, ...run } = await startRun('create-addon', 4)
  await engine.send({ rows: [1] })
  run.backUp()
  await engine.send({ rows: [2, 3] })
  const after = await run.restore()
  await rm(join(engine.runFolder, changeRunFiles.claims))
  const away = { ...after, ledger: endingAfter(0, after.ledger) }
  await expect(fix(away, { staged: 4 })).rejects.toThrow('away')
  expect(await fix(after, { staged: 4 })).toEqual({ restaged: 0, unknown: 3 })
})
