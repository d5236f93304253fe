import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { openClaimJournal, readClaims } from '../../../core/changes/claim-journal.ts'
import { closeGap, markClaimed } from '../../../core/changes/restored-ledger.ts'
import { closeUntried } from '../../../core/changes/reconcile/close-remaining.ts'
import { keepStagedChanges } from '../../../core/changes/staged-changes.ts'
import { type ChangeToStage, withKey } from '../../../core/changes/stage-changes.ts'
import { takeOver } from '../../../core/changes/send/release-rows.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import { summarize } from '../../../core/changes/report.ts'
import { leaveToNextRecovery } from '../../../core/recoveries/restored-ledger.ts'
import { changeStates } from '../../../core/state/schema.ts'
import {
  addonRows,
  clientOf,
  copies,
  retentionRows,
  startEngine,
  startSandbox,
  temporaryFolder,
  workspace,
} from './engine.ts'

// A ledger that was restored twice: in between, the run claimed changes that the second backup has as closed.

const space = { workspace, mode: 'live' } as const
const { 'create-addon': addon, 'create-retention': retention, 'resume-subscription': resume } = changeKinds

test.each(changeStates.filter((state) => state !== 'sending'))(
  'a row that was claimed since the backup is unknown, although the backup calls it %s',
  async (state) => {
    const engine = await startEngine({ kind: addon, sandbox: await startSandbox() })
    const { ledger, run, runFolder: folder } = engine
    await engine.stage(addonRows(2))
    await ledger.moveAll({ run, from: 'staged', patch: { state, outcome: 'notTried', holdsKey: 0 } })
    {
      await using journal = await openClaimJournal(folder)
      await journal.record({ row: 1, claims: 1, at: 5 })
    }
    expect(await markClaimed({ ledger, run, folder, isCopy: false })).toBe(1)
    expect(await engine.rows()).toMatchObject([
      { state: 'unknown', outcome: 'restored', holdsKey: 1, claims: 1, sends: 1, sentAt: 5, lookups: 0 },
      { state, outcome: 'notTried', claims: 0 },
    ])
    expect(await markClaimed({ ledger, run, folder, isCopy: false })).toBe(0)
  },
)

test('a retention that a failed canary left, and that the run sent after a restore, is found after the next restore', async () => {
  const sandbox = await startSandbox()
  const folders = { begun: await temporaryFolder(), ended: await temporaryFolder() }
  const of = { kind: retention, sandbox }
  const begun = await startEngine({ ...of, folder: folders.begun })
  await begun.stage(retentionRows(3))
  const ended = await startEngine({ ...of, folder: folders.ended, beside: begun.runFolder })
  await ended.stage(retentionRows(3))
  await closeUntried({ ledger: ended.ledger, run: ended.run, why: 'the canary failed' })
  await begun.send({ rows: [2] })
  expect(
    await markClaimed({ ledger: ended.ledger, run: ended.run, folder: ended.runFolder, isCopy: false }),
  ).toBe(1)
  await ended.finish()
  const { counts } = await summarize(ended)
  expect(counts).toMatchObject({ done: 1, notTried: 2, unknown: 0 })
  expect([...copies(sandbox, 'retentions', 'number')]).toEqual([['2', 1]])
})

/**
 * A second run sent a change whose key, by the ledger that was put back, the first still has in doubt: it was in doubt
 * at the backup, and settled afterwards.
 */
async function sentByTheSecond(
  kind: typeof resume,
  {
    changes,
    ...on
  }: {
    sandbox: Awaited<ReturnType<typeof startSandbox>>
    changes: ChangeToStage[]
  },
) {
  const folder = await temporaryFolder()
  const first = await startEngine({ ...on, kind, folder, run: 'first' })
  await first.stage(changes)
  const second = { ...on, kind, run: 'second' }
  const sent = await startEngine(second)
  await keepStagedChanges({
    folder: sent.runFolder,
    changes: (async function* () {
      yield changes.map((change) => withKey({ kind, change }))
    })(),
  })
  await sent.stage(changes)
  await sent.send({ rows: [1] })
  await first.ledger.moveAll({
    run: 'first',
    from: 'staged',
    patch: { state: 'unknown', outcome: 'lostReply' },
  })
  const after = await startEngine({ ...second, folder, beside: sent.runFolder })
  const { ledger, run, runFolder } = after
  const gap = {
    ledger,
    run,
    kind,
    space,
    folder: runFolder,
    staged: changes.length,
    onHeld: leaveToNextRecovery,
  }
  expect(await closeGap(gap)).toEqual({ restaged: changes.length, unknown: 1 })
  return after
}

test('a subscription that a run resumed is looked up, although the restored ledger has it in doubt in an earlier run', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 2, customers: 10, plans: 3 },
    needsAttention: 1,
  })
  const changes = [...sandbox.control.records({ resource: 'subscriptions' })].map(
    (text, at): ChangeToStage => {
      const { id, customer } = JSON.parse(text) as { id: string; customer: string }
      return { row: at + 1, body: { id, customer } }
    },
  )
  const after = await sentByTheSecond(resume, { sandbox, changes })
  expect(await after.rows()).toMatchObject([
    { state: 'unknown', outcome: 'restored', sends: 1 },
    { state: 'dropped', outcome: 'notTried', sends: 0 },
  ])
  await after.finish()
  expect((await after.rows())[0]).toMatchObject({ state: 'done', outcome: 'recovered' })
})

test('a change whose key another run holds is not sent again when it is absent, but parked with a note on both', async () => {
  const sandbox = await startSandbox()
  const after = await sentByTheSecond(retention, { sandbox, changes: retentionRows(3) })
  const [sent] = sandbox.control.ids({ resource: 'retentions' })
  sandbox.control.delete({ resource: 'retentions', id: String(sent) })
  sandbox.control.insert({ resource: 'retentions' })
  await after.finish()
  expect((await after.rows())[0]).toMatchObject({
    state: 'parked',
    outcome: 'absent',
    error: 'two lookups proved that it does not exist; row 1 of the run first has its key now',
  })
  expect((await readClaims(after.runFolder))?.recorded).toBe(1)
})

/** In the restored ledger the second run took over the change that the first has claimed and sent. */
async function claimedByBoth(kind: typeof addon) {
  const sandbox = await startSandbox()
  const changes = kind === addon ? addonRows(1) : retentionRows(1)
  const of = { kind, sandbox }
  const claiming = await startEngine({ ...of, run: 'first' })
  await claiming.stage(changes)
  await claiming.send()
  const folder = await temporaryFolder()
  const first = await startEngine({ ...of, run: 'first', folder, beside: claiming.runFolder })
  await first.stage(changes)
  await closeUntried({ ledger: first.ledger, run: 'first', why: 'stopped' })
  const second = await startEngine({ ...of, run: 'second', folder })
  await second.stage(changes)
  await markClaimed({ ledger: first.ledger, run: 'first', folder: first.runFolder, isCopy: false })
  return { sandbox, first, second }
}

test('an addon that one run claimed and, in the restored ledger, another took over is left to a person by both', async () => {
  const { sandbox, first, second } = await claimedByBoth(addon)
  await Promise.all([first.finish(), second.finish()])
  expect(sandbox.control.effects()).toHaveLength(1)
  expect([...(await first.rows()), ...(await second.rows())]).toMatchObject([
    { state: 'parked' },
    { state: 'parked' },
  ])
})

test('a retention that one run claimed and, in the restored ledger, another took over is found by both, and sent by neither', async () => {
  const { sandbox, first, second } = await claimedByBoth(retention)
  await first.finish()
  await second.finish()
  expect(sandbox.control.effects()).toHaveLength(1)
  expect([...(await first.rows()), ...(await second.rows())]).toMatchObject([
    { state: 'done', outcome: 'found', answerId: '1001' },
    { state: 'done', outcome: 'found', answerId: '1001' },
  ])
})

test('a retention that the run found which took it over is parked by the run that sent it, with the id of the record', async () => {
  const { sandbox, first, second } = await claimedByBoth(retention)
  await second.finish()
  await first.finish()
  expect(sandbox.control.effects()).toHaveLength(1)
  expect(await second.rows()).toMatchObject([{ state: 'done', outcome: 'found', answerId: '1001' }])
  expect(await first.rows()).toMatchObject([
    {
      state: 'parked',
      outcome: 'foundByAnother',
      error: 'row 1 of the run second has its key now and the record 1001: check whether this row created it',
    },
  ])
})

test.each([
  ['', 2],
  [', and a third has staged it again', 3],
])(
  'a retention that is sent again on purpose is parked with the record of the run that took it over, not of the one that did it first%s',
  async (_, runs) => {
    const sandbox = await startSandbox()
    const again = retentionRows(1).map((change) => ({ ...change, sendAgain: true }))
    const folder = await temporaryFolder()
    const begin = async (run: string, changes: ChangeToStage[]) => {
      const engine = await startEngine({ kind: retention, sandbox, folder, run })
      await engine.stage(changes)
      return engine
    }
    await (await begin('earliest', retentionRows(1))).send()
    const first = await begin('first', again)
    await closeUntried({ ledger: first.ledger, run: 'first', why: 'stopped' })
    const second = await begin('second', again)
    // The first has sent it since the backup.
    await clientOf(sandbox).createRetention(again[0]!.body, { beforeSend: async () => {} })
    {
      await using journal = await openClaimJournal(first.runFolder)
      await journal.record({ row: 1, claims: 1, at: 5 })
    }
    await markClaimed({ ledger: first.ledger, run: 'first', folder: first.runFolder, isCopy: false })
    await second.finish()
    if (runs === 3) await begin('third', again)
    await first.finish()
    expect(sandbox.control.effects()).toHaveLength(2)
    expect(await first.rows()).toMatchObject([
      {
        state: 'parked',
        outcome: 'foundByAnother',
        error:
          'row 1 of the run second has its key now and the record 1002: check whether this row created it',
      },
    ])
  },
)

test('a resume that fell back is left to the recovery that has the subscription now, whatever earlier ones did', async () => {
  const sandbox = await startSandbox({
    counts: { subscriptions: 1, customers: 10, plans: 3 },
    needsAttention: 1,
  })
  const [record] = [...sandbox.control.records({ resource: 'subscriptions' })]
  const { id, customer } = JSON.parse(record!) as { id: string; customer: string }
  const changes = [{ row: 1, body: { id, customer } }]
  const folder = await temporaryFolder()
  const begin = async (run: string) => {
    const engine = await startEngine({ kind: resume, sandbox, folder, run })
    await engine.stage(changes)
    return engine
  }
  const { ledger } = await begin('earliest')
  const done = { state: 'done', outcome: 'recovered', answerId: id } as const
  await ledger.moveAll({ run: 'earliest', from: 'staged', patch: done })
  const first = await begin('first')
  await closeUntried({ ledger, run: 'first', why: 'stopped' })
  await begin('second')
  {
    await using journal = await openClaimJournal(first.runFolder)
    await journal.record({ row: 1, claims: 1, at: 5 })
  }
  await markClaimed({ ledger, run: 'first', folder: first.runFolder, isCopy: false })
  await first.finish()
  const [row] = await first.rows()
  expect(row).toMatchObject({ state: 'parked', outcome: 'fellBack' })
  expect(row?.error).toMatch(/; row 1 of the run second has its key now$/)
})

test('a run whose rows another has taken over is unproven, because it does not know their outcome', async () => {
  const engine = await startEngine({ kind: addon, sandbox: await startSandbox() })
  const { ledger, run } = engine
  await engine.stage(addonRows(3))
  await takeOver({ ledger, rows: (await engine.rows()).slice(1), by: 'second' })
  await engine.send()
  const summary = await summarize({ ledger, run })
  expect(summary.counts).toMatchObject({ done: 1, skipped: 2 })
  expect(verdictOf({ kind: addon.name, summary })).toMatchObject({
    verdict: 'unproven',
    reasons: ['2 taken over by another run, whose report has their results'],
  })
})
