import { copyFileSync, mkdirSync, truncateSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ChangeKind, ChangeKindName } from '../../../core/changes/change-kind.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import {
  claimsAtRepair,
  countLostClaims,
  repairLedger,
  watchLedger,
} from '../../../core/changes/old-ledger.ts'
import { summarize } from '../../../core/changes/report.ts'
import { chooseCanary } from '../../../core/changes/send/canary.ts'
import { takeOver } from '../../../core/changes/close.ts'
import { type ChangeToStage, createChangesFile, toNewChange } from '../../../core/changes/staged-changes.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import { sharedMark } from '../../../core/state/claims-mark.ts'
import { OldLedgerError } from '../../../core/state/errors.ts'
import { openState } from '../../../core/state/open.ts'
import { cached } from '../../../core/storage/cached.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { senderOf } from '../state/sender-of.ts'
import {
  addonRows,
  copies,
  oneBroken,
  requestsOf,
  resumeRows,
  retentionRows,
  stageChanges,
  startEngine,
  startSandbox,
  workspace,
} from './engine.ts'
import { temporaryFolder, temporaryState } from '../state/temporary-folder.ts'

const markFile = 'state.claims'

const rowsOf = (name: ChangeKindName, count: number): ChangeToStage[] =>
  name === 'create-addon' ? addonRows(count) : retentionRows(count)

/** The state of each row, and how often it was sent. */
const statesOf = async ({ rows }: Pick<Awaited<ReturnType<typeof startEngine>>, 'rows'>) =>
  (await rows()).map(({ state, sends }) => `${state} ${sends}`)

const timesOf = (sandbox: Sandbox, name: ChangeKindName) => [
  ...(name === 'create-addon'
    ? copies(sandbox, 'addons', 'name')
    : copies(sandbox, 'retentions', 'number')
  ).values(),
]

interface Kept {
  kind: ChangeKind
  changes: ChangeToStage[]
  run?: string
}

/** Copies the state as `sqlite3 .backup` does. */
function backUp(folder: string, to: string) {
  const db = new DatabaseSync(join(folder, 'state.db'))
  db.exec(`vacuum into '${join(to, 'state.db')}'`)
  db.close()
}

async function keep({ kind, changes, run = 'run-1' }: Kept) {
  const folder = await temporaryFolder()
  await using file = await createChangesFile(folder, { run, workspace, mode: 'live', kind: kind.name })
  for (const change of changes) file.add(toNewChange({ kind, change }))
  await file.keep()
  return folder
}

/** A state of its own, with staged addons of the run `r`, and its sender. */
async function stageAddons(count: number) {
  const folder = await temporaryFolder()
  const state = await temporaryState(folder)
  const changes = addonRows(count)
  await stageChanges({ ledger: state.ledger, run: 'r', kind: changeKinds['create-addon'], changes })
  return { folder, state, markNow: () => readFile(join(folder, markFile), 'utf8') }
}

const repairFolder = async (folder: string, runFolders: readonly string[], writes = Infinity) => {
  const state = await openState({ folder, isRepair: true })
  try {
    const { mark } = state
    return await repairLedger({ ledger: endingAfter(writes, state.ledger), mark, folders: runFolders })
  } finally {
    await state.close()
  }
}

/** A run that is staged, and a way to continue with its state as it was at the last backup. */
async function startRun(name: ChangeKindName, count: number) {
  const kind = changeKinds[name]
  const sandbox = await startSandbox()
  const [folder, restored] = [await temporaryFolder(), await temporaryFolder()]
  const changes = rowsOf(name, count)
  const beside = await keep({ kind, changes })
  const engine = await startEngine({ kind, sandbox, folder, beside, concurrency: 1 })
  await engine.stage(changes)
  return {
    kind,
    sandbox,
    engine,
    changes,
    restored,
    beside,
    backUp: () => backUp(folder, restored),
    /** Leaves a backup that has only so many rows of the run. */
    backUpRows: async (count: number) => {
      const backup = await openState({ folder: restored })
      if (count > 0)
        await stageChanges({ ledger: backup.ledger, run: 'run-1', kind, changes: changes.slice(0, count) })
      await backup.close()
    },
    /** What lies beside the ledger stays as it is. */
    putMark: () => copyFileSync(join(folder, markFile), join(restored, markFile)),
    repair: (writes?: number) => repairFolder(restored, [beside], writes),
    open: () => startEngine({ kind, sandbox, folder: restored, beside }),
  }
}

test.each(['create-addon', 'create-retention'] as const)(
  '%s: a ledger from before the canary is refused; once repaired, no row is sent twice',
  async (name) => {
    const { engine, sandbox, ...run } = await startRun(name, 60)
    run.backUp()
    const canary = await chooseCanary({ ledger: engine.ledger, run: engine.run, kind: engine.kind, size: 3 })
    await engine.send({ rows: canary })
    run.putMark()
    await expect(run.open()).rejects.toThrow(
      'it lacks 3 of 3 claims, so it was restored from a backup, or its server failed over. Nothing is sent. Stop all ' +
        'workers, run `npx connector state repair`, and start them again.',
    )
    expect(await run.repair()).toEqual([{ run: 'run-1', restaged: 0, unknown: 60 }])
    const after = await run.open()
    await after.finish()
    expect(timesOf(sandbox, name)).toEqual(timesOf(sandbox, name).map(() => 1))
    const { counts } = await summarize({ ledger: after.ledger, run: after.run })
    expect(counts).toMatchObject(name === 'create-addon' ? { done: 0, parked: 60 } : { done: 60, parked: 0 })
  },
)

test.each([0, 7])(
  'of a run of which the backup has %i rows, the others are staged again, all as unknown',
  async (stagedThen) => {
    const { changes, engine, sandbox, ...run } = await startRun('create-retention', 30)
    await run.backUpRows(stagedThen)
    await engine.send({ rows: [3, 30] })
    run.putMark()
    expect(await run.repair()).toEqual([{ run: 'run-1', restaged: 30 - stagedThen, unknown: stagedThen }])
    const after = await run.open()
    expect(new Set((await after.rows()).map(({ state }) => state))).toEqual(new Set(['unknown']))
    await after.finish()
    const { counts } = await summarize({ ledger: after.ledger, run: after.run, staged: 30 })
    expect(counts).toMatchObject({ done: 30, unknown: 0 })
    expect(timesOf(sandbox, 'create-retention')).toEqual(changes.map(() => 1))
  },
)

test('a ledger from before a repair is refused, also one that is newer than the first backup', async () => {
  const { engine, ...run } = await startRun('create-addon', 5)
  run.backUp()
  await engine.send({ rows: [1, 2] })
  run.putMark()
  const later = await temporaryFolder()
  backUp(engine.folder, later)
  await run.repair()
  copyFileSync(join(run.restored, markFile), join(later, markFile))
  await expect(openState({ folder: later })).rejects.toBeInstanceOf(OldLedgerError)
})

test('where the mark was restored, too, a repair makes all unknown that is open', async () => {
  const { engine, ...run } = await startRun('create-addon', 4)
  await engine.send({ rows: [1] })
  run.backUp()
  run.putMark()
  await engine.send({ rows: [2, 3] })
  expect(await run.repair()).toEqual([{ run: 'run-1', restaged: 0, unknown: 3 }])
})

test('nothing is staged from a file of a run that is cut short, and the sentence names it', async () => {
  const { beside } = await startRun('create-addon', 5)
  const path = join(beside, 'staged-changes.jsonl')
  const lines = (await readFile(path, 'utf8')).split('\n')
  truncateSync(path, lines.slice(0, 4).join('\n').length + 1)
  await expect(repairFolder(await temporaryFolder(), [beside])).rejects.toThrow(
    `${path} is missing or cut short`,
  )
})

test('a ledger that lost the whole run proves nothing', async () => {
  const engine = await startEngine({ kind: changeKinds['create-addon'], sandbox: await startSandbox() })
  const summary = await summarize({ ledger: engine.ledger, run: engine.run, staged: 60 })
  expect(summary.counts.unknown).toBe(60)
  expect(verdictOf({ kind: 'create-addon', summary })).toMatchObject({
    verdict: 'unproven',
    reasons: ['60 unknown', '60 of these staged by the run but missing from the ledger (state.db)'],
  })
})

test.each([0, 1])(
  'a repair that ends after %i writes leaves a ledger that is refused, and repeating it completes it',
  async (writes) => {
    const { engine, ...run } = await startRun('create-addon', 20)
    await run.backUpRows(7)
    await engine.send({ rows: [3, 15] })
    run.putMark()
    await expect(run.repair(writes)).rejects.toThrow('away')
    await expect(run.open()).rejects.toBeInstanceOf(OldLedgerError)
    await run.repair()
    const after = await run.open()
    expect(new Set((await after.rows()).map(({ state }) => state))).toEqual(new Set(['unknown']))
  },
)

/** A ledger whose store is away after a number of writes. */
function endingAfter(writes: number, ledger: Awaited<ReturnType<typeof startEngine>>['ledger']) {
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
    stage: counted((options: Parameters<typeof ledger.stage>[0]) => ledger.stage(options)),
    markRestored: counted((options: Parameters<typeof ledger.markRestored>[0]) =>
      ledger.markRestored(options),
    ),
  }
}

test.each(['staged', 'unknown'] as const)(
  'rows that another run took over since the backup, and that the backup has as %s in the first one, are sent by neither',
  async (state) => {
    const { engine, changes, kind, sandbox, ...run } = await startRun('create-addon', 3)
    const { ledger } = engine
    if (state === 'unknown')
      await ledger.moveAll({ run: 'run-1', from: 'staged', patch: { state, unknownSince: 1 } })
    run.backUp()
    const all = await engine.rows()
    if (state === 'staged') await takeOver({ ledger, rows: all, by: 'run-2' })
    else await ledger.moveAll({ run: 'run-1', from: state, patch: { state: 'dropped' } })
    const beside = await keep({ kind, changes, run: 'run-2' })
    const second = await startEngine({ kind, sandbox, folder: engine.folder, beside, run: 'run-2' })
    await second.stage(changes)
    await second.send()
    run.putMark()
    await repairFolder(run.restored, [run.beside, beside])
    const first = await run.open()
    const after = await startEngine({ kind, sandbox, folder: run.restored, beside, run: 'run-2' })
    expect((await first.rows()).map((row) => row.state)).toEqual(
      all.map(() => (state === 'staged' ? 'dropped' : 'unknown')),
    )
    for (const one of [first, after]) await one.finish()
    expect(timesOf(sandbox, 'create-addon')).toEqual([1, 1, 1])
  },
)

/** CLAIM_KILLS=100 makes a longer test of it. */
const claimKills = Number(process.env['CLAIM_KILLS'] ?? 20)

test(`${claimKills} kills between a claim and its mark are never taken for a restore`, async () => {
  const { folder, state: first, markNow } = await stageAddons(claimKills)
  const rows = await Array.fromAsync(first.ledger.rows({ run: 'r' }))
  await first.close()
  for (const { id } of rows) {
    const before = await markNow().catch(() => '')
    const state = await openState({ folder })
    await state.ledger.claim({ sender: await senderOf(state.ledger, 'r'), id, sends: 0, at: 1 })
    await state.close()
    expect(Number(await markNow())).toBe(Number(before) + 1)
    // What the kill leaves: the claim is committed, and its mark is not written.
    await writeFile(join(folder, markFile), before)
    await (await openState({ folder })).close()
    expect(Number(await markNow())).toBe(Number(before) + 1)
  }
})

test('claims that share a write of the mark are all marked before any of them is sent', async () => {
  const { state, markNow } = await stageAddons(30)
  const sender = await senderOf(state.ledger, 'r')
  let claimed = 0
  const claim = async ({ id }: { id: number }) => {
    await state.ledger.claim({ sender, id, sends: 0, at: 1 })
    const number = (claimed += 1)
    expect(Number(await markNow())).toBeGreaterThanOrEqual(number)
  }
  await Promise.all((await state.ledger.page({ run: 'r', limit: 30 })).map(claim))
  expect(await markNow()).toBe(`${'30'.padStart(16)}\n`)
})

test('a claim whose mark the disk does not take is never sent, and stops the run', async () => {
  const { engine, sandbox } = await startRun('create-addon', 3)
  mkdirSync(join(engine.folder, markFile))
  await expect(engine.send()).rejects.toMatchObject({ code: 'EISDIR' })
  expect(copies(sandbox, 'addons', 'name').size).toBe(0)
  expect(await statesOf(engine)).toEqual(['staged 0', 'staged 0', 'staged 0'])
})

test('a mark that is not a number stops the worker with the name of its file', async () => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, markFile), 'x\n')
  await expect(openState({ folder })).rejects.toThrow(join(folder, markFile))
})

test.each([
  ['rows', { rows: 5, claims: 0 }, '1 of 5 rows'],
  ['claims', { rows: 4, claims: 3 }, 'claims'],
])(
  'a ledger with fewer %s than Temporal was told is refused until it is repaired',
  async (_, told, lacks) => {
    const { engine, beside } = await startRun('create-addon', 4)
    await engine.send({ rows: [1] })
    const { ledger, run } = engine
    const watch = () => watchLedger({ ledger, mark: undefined, run, told })
    await expect(watch()).rejects.toThrow(`it lacks ${lacks} of run-1`)
    await repairLedger({ ledger, mark: undefined, folders: [beside] })
    if (told.rows === 4) expect((await watch()).claims).toBeGreaterThan(told.claims)
  },
)

/** A run that resumes one subscription, which falls back each time. */
async function startFallingBack() {
  const kind = changeKinds['resume-subscription']
  const sandbox = await startSandbox({
    ...oneBroken,
    faults: [{ kind: 'fallBack', on: 'POST /subscriptions/{id}/resume/' }],
  })
  const resumes = () => requestsOf(sandbox, 'POST').length
  const changes = resumeRows(sandbox)
  const beside = await keep({ kind, changes })
  const restored = await temporaryFolder()
  const engine = await startEngine({ kind, sandbox, beside })
  const most = 3
  const sendAndLook = async (run: typeof engine) => {
    await run.send()
    await run.settle({ attempts: { most, waitsMs: [0] } })
  }
  const finish = async (run: typeof engine) => {
    for (let times = 0; times <= most; times += 1) await sendAndLook(run)
    expect(await run.rows()).toMatchObject([{ state: 'parked', outcome: 'attemptsUsedUp' }])
  }
  return { kind, sandbox, engine, changes, beside, restored, most, resumes, sendAndLook, finish }
}

/** The mark of workers that have a bucket in common. */
async function markInBucket() {
  const dataDir = await temporaryFolder()
  const shared = cached(dataDir, createFolderStore(await temporaryFolder()))
  return sharedMark({ shared, dataDir })!
}

test('workers on PostgreSQL keep the mark in their bucket: as they send, at the end of a segment, and never lower', async () => {
  const { engine } = await startRun('create-addon', 4)
  const mark = await markInBucket()
  const { ledger, run } = engine
  expect(await mark.read()).toBe(0)
  const watched = await watchLedger({ ledger, mark, run, told: { rows: 4, claims: 0 } })
  await engine.send({ ledger: watched.ledger, rows: [1, 2] })
  expect(watched.claims).toBe(2)
  // As the last look for what is due found it: a worker that is killed now leaves this.
  expect(await mark.read()).toBe(2)
  await watched.end()
  await mark.raise(1)
  expect(await mark.read()).toBe(2)
  await ledger.moveAll({ run, from: 'done', patch: { claims: 0 } })
  await expect(watchLedger({ ledger, mark, run, told: { rows: 4, claims: 0 } })).rejects.toThrow(
    'it lacks 2 of 2 claims',
  )
})

test('a segment under which the ledger is replaced by an older one leaves a mark of what it has claimed', async () => {
  const { engine } = await startRun('create-addon', 1)
  const mark = await markInBucket()
  const { ledger, run } = engine
  const watched = await watchLedger({ ledger, mark, run, told: { rows: 1, claims: 0 } })
  const [row] = await engine.rows()
  await watched.ledger.claim({ sender: await senderOf(ledger, run), id: row!.id, sends: 0, at: 1 })
  await ledger.moveAll({ run, from: 'sending', patch: { state: 'staged', claims: 0, sends: 0 } })
  await watched.end()
  expect(await mark.read()).toBe(1)
})

test.each(['sending', 'unknown'] as const)(
  'an update that the backup has as %s is not sent after a later one of the same contact, which is sent again',
  async (state) => {
    const kind = changeKinds['update-contact']
    const folder = await temporaryFolder()
    const first = [{ row: 1, body: { id: 'con_1', name: 'first' } }]
    const later = [{ row: 1, body: { id: 'con_1', name: 'later' } }]
    const folders = [await keep({ kind, changes: first, run: 'run-1' })]
    const backup = await openState({ folder })
    await stageChanges({ ledger: backup.ledger, run: 'run-1', kind, changes: first })
    await backup.ledger.moveAll({ run: 'run-1', from: 'staged', patch: { state, sends: 1, claims: 1 } })
    await backup.close()
    folders.push(await keep({ kind, changes: later, run: 'run-2' }))
    await repairFolder(folder, folders)
    const { ledger } = await temporaryState(folder)
    const rows = await Promise.all(['run-1', 'run-2'].map((run) => ledger.row({ run, row: 1 })))
    expect(rows).toMatchObject([
      { state: 'dropped', outcome: 'takenOver', sends: 1 },
      { state: 'unknown', outcome: 'restored' },
    ])
  },
)

test('of several updates of a contact that a backup lacks, the last one is sent again and no earlier one', async () => {
  const kind = changeKinds['update-contact']
  const folder = await temporaryFolder()
  await (await openState({ folder })).close()
  const folders: string[] = []
  for (const run of ['run-1', 'run-2']) {
    const changes = [{ row: 1, body: { id: 'con_1', name: run } }]
    folders.push(await keep({ kind, changes, run }))
    // Runs that stage one contact do not begin in the same millisecond.
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await repairFolder(folder, folders)
  const state = await temporaryState(folder)
  const rows = await Promise.all(['run-1', 'run-2'].map((run) => state.ledger.row({ run, row: 1 })))
  expect(rows.map((row) => row?.state)).toEqual(['dropped', 'unknown'])
})

test.each(['not there', 'staged'])(
  'an update to values that were done before another one, which in the backup is %s, is the one that a repair keeps',
  async (second) => {
    const kind = changeKinds['update-contact']
    const folder = await temporaryFolder()
    const bodyOf = (name: string) => [{ row: 1, body: { id: 'con_1', name } }]
    const old = await openState({ folder })
    const { ledger } = old
    await stageChanges({ ledger, run: 'run-1', kind, changes: bodyOf('A') })
    await ledger.moveAll({ run: 'run-1', from: 'staged', patch: { state: 'done', sends: 1, claims: 1 } })
    if (second === 'staged') await stageChanges({ ledger, run: 'run-2', kind, changes: bodyOf('B') })
    await old.close()
    const folders: string[] = []
    for (const [run, name] of [
      ['run-2', 'B'],
      ['run-3', 'A'],
    ] as const) {
      folders.push(await keep({ kind, changes: bodyOf(name), run }))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    await repairFolder(folder, folders)
    const state = await temporaryState(folder)
    const rows = await Promise.all(['run-2', 'run-3'].map((run) => state.ledger.row({ run, row: 1 })))
    expect(rows.map((row) => row?.state)).toEqual(['dropped', 'unknown'])
  },
)

test.each(['not there', 'staged', 'unknown'] as const)(
  'an update that had ended when a later run skipped its record, and which in the backup is %s, is not sent after a repair',
  async (second) => {
    const kind = changeKinds['update-contact']
    const folder = await temporaryFolder()
    const bodyOf = (name: string) => [{ row: 1, body: { id: 'con_1', name } }]
    const old = await openState({ folder })
    const { ledger } = old
    await stageChanges({ ledger, run: 'run-1', kind, changes: bodyOf('A') })
    await ledger.moveAll({ run: 'run-1', from: 'staged', patch: { state: 'done', sends: 1, claims: 1 } })
    if (second !== 'not there') await stageChanges({ ledger, run: 'run-2', kind, changes: bodyOf('B') })
    if (second === 'unknown')
      await ledger.moveAll({ run: 'run-2', from: 'staged', patch: { state: 'unknown', sends: 1, claims: 1 } })
    await old.close()
    const closed = { state: 'dropped', outcome: 'doneEarlier', error: 'the run run-1 did it' } as const
    const folders: string[] = []
    for (const [run, changes] of [
      ['run-2', bodyOf('B')],
      ['run-3', bodyOf('A').map((one) => ({ ...one, closed }))],
      ['run-4', bodyOf('C').map((one) => ({ ...one, closed: { ...closed, outcome: 'invalid' } }))],
    ] as const) {
      folders.push(await keep({ kind, changes, run }))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    await repairFolder(folder, folders)
    const state = await temporaryState(folder)
    const rows = await Promise.all(['run-2', 'run-3'].map((run) => state.ledger.row({ run, row: 1 })))
    expect(rows).toMatchObject([{ state: 'dropped', outcome: 'takenOver' }, closed])
  },
)

test('no subscription is resumed more often than its attempts, although its ledger was put back to just after a repair', async () => {
  const { engine, sandbox, changes, beside, resumes, finish, restored } = await startFallingBack()
  await engine.stage(changes)
  await engine.state.close()
  await repairFolder(engine.folder, [beside])
  backUp(engine.folder, restored)
  await finish(await startEngine({ kind: engine.kind, sandbox, folder: engine.folder, beside }))
  const before = resumes()
  expect(before).toBeGreaterThan(1)
  copyFileSync(join(engine.folder, markFile), join(restored, markFile))
  await repairFolder(restored, [beside])
  // Repeating it, as after an interruption, counts nothing twice.
  await repairFolder(restored, [beside])
  const after = await startEngine({ kind: engine.kind, sandbox, folder: restored, beside })
  expect(await after.rows()).toMatchObject([{ state: 'unknown', sends: 1 + before }])
  await finish(after)
  expect(resumes()).toBe(before)
})

test.each([true, false])(
  'a resume that a restored ledger lacks counts as sent when that was repaired, so that a fall within a day is the same incident (in the backup: %s)',
  async (isInBackup) => {
    const { engine, beside, restored, changes } = await startFallingBack()
    const { ledger, kind, run } = engine
    const before = ledger.now()
    // An earlier incident, long ago.
    const earlier = { ledger, run: 'earlier', kind, changes }
    await stageChanges(earlier)
    await ledger.moveAll({ run: 'earlier', from: 'staged', patch: { state: 'done', sends: 1, sentAt: 1 } })
    if (!isInBackup) backUp(engine.folder, restored)
    await engine.stage(changes)
    if (isInBackup) backUp(engine.folder, restored)
    await engine.send()
    copyFileSync(join(engine.folder, markFile), join(restored, markFile))
    await repairFolder(restored, [beside])
    const state = await temporaryState(restored)
    const [row] = await state.ledger.page({ run, limit: 1 })
    await state.ledger.moveAll({ run, from: 'unknown', patch: { state: 'done' } })
    const space = { workspace, mode: 'live', kind: kind.name, keys: [row!.key] } as const
    const history = (await state.ledger.history(space)).get(row!.key)
    expect(history?.attempts).toBe(1)
    expect(history?.lastSentAt).toBeGreaterThanOrEqual(before)
  },
)

test('resumes of which only Temporal was told count against the attempts, also those of a subscription that is parked', async () => {
  const { engine, kind, sandbox, changes, beside, restored, most, resumes, sendAndLook, finish } =
    await startFallingBack()
  const { run } = engine
  await engine.stage(changes)
  backUp(engine.folder, restored)
  while (resumes() < 2) await sendAndLook(engine)
  const told = await engine.ledger.known({ run })
  // The mark of the backup, too, knows of none.
  const state = await openState({ folder: restored, isRepair: true })
  const atRepair = await claimsAtRepair({ ...state, run })
  await state.close()
  await repairFolder(restored, [beside])
  const after = await startEngine({ kind, sandbox, folder: restored, beside })
  const { ledger } = after
  await countLostClaims({ ledger, run, told, atRepair })
  // What Temporal is told from then on has lost nothing.
  await countLostClaims({ ledger, run, told: await ledger.known({ run }), atRepair })
  await ledger.moveAll({ run, from: 'unknown', patch: { state: 'parked' } })
  await countLostClaims({ ledger, run, told: { claims: atRepair + 5 }, atRepair })
  expect(await after.rows()).toMatchObject([{ sends: 2 + 5 }])
  await ledger.moveAll({ run, from: 'parked', patch: { state: 'unknown', sends: 2 } })
  await finish(after)
  expect(resumes()).toBe(most)
})

test.each([1, 2, 3])(
  'no subscription is resumed more often than its attempts, although its ledger was put back to before %i of 3 resumes',
  async (lost) => {
    const { engine, kind, sandbox, changes, beside, restored, most, resumes, sendAndLook, finish } =
      await startFallingBack()
    await engine.stage(changes)
    while (resumes() < most - lost) await sendAndLook(engine)
    backUp(engine.folder, restored)
    await finish(engine)
    expect(resumes()).toBe(most)
    copyFileSync(join(engine.folder, markFile), join(restored, markFile))
    await repairFolder(restored, [beside])
    await finish(await startEngine({ kind, sandbox, folder: restored, beside }))
    expect(resumes()).toBe(most)
  },
)
