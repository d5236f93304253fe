import { expect, test } from 'vitest'
import { closeRemaining, closeUntried } from '../../../core/changes/close.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { summarize } from '../../../core/changes/report.ts'
import { resolveChange } from '../../../core/changes/resolve.ts'
import { StateBusyError } from '../../../core/state/errors.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { addonRows, contactRows, copies, retentionRows, stageChanges, startRun } from './engine.ts'

const kind = changeKinds['create-retention']

test('rows left when a run ends are not tried, and free for another run', async () => {
  const { engine } = await startRun(kind, retentionRows(10), { limits: { maxChanges: 3 } })
  await engine.send()
  expect(await closeUntried({ ledger: engine.ledger, run: engine.run, why: 'at most 3' })).toBe(7)
  const { counts } = await summarize(engine)
  expect(counts).toEqual({ staged: 0, done: 3, rejected: 0, unknown: 0, parked: 0, skipped: 0, notTried: 7 })
  const other = { ledger: engine.ledger, run: 'run-2', kind, changes: retentionRows(10) }
  const { staged, held } = await stageChanges(other)
  expect([staged, ...held.map(({ by }) => by.run)]).toEqual([7, 'run-1', 'run-1', 'run-1'])
})

test('a run whose unsent rows cannot be closed does not end as if they were', async () => {
  const { engine } = await startRun(kind, [])
  const { ledger, run } = engine
  const moveAll = ledger.moveAll.bind(ledger)
  ledger.moveAll = async (options) => {
    if (options.from === 'staged') throw new StateBusyError({ place: 'state.db' })
    return await moveAll(options)
  }
  await expect(closeRemaining({ ledger, run, why: 'the run ended' })).rejects.toThrow(StateBusyError)
})

test('a person resolves a parked row: it exists, it does not, or it is dropped; who and why are recorded', async () => {
  const on = 'POST /addons/'
  const { sandbox, engine } = await startRun(changeKinds['create-addon'], addonRows(4), {
    faults: [{ kind: 'reset', effect: 'none', on, requests: [1, 2, 3] }],
    concurrency: 1,
  })
  await engine.finish()
  const { ledger, run, billing } = engine
  const who = { ledger, run, billing, by: 'Ana', why: 'looked in the dashboard' }
  await resolveChange({ ...who, row: 1, decision: { exists: 'add_77' } })
  await resolveChange({ ...who, row: 2, decision: { absent: true } })
  await resolveChange({ ...who, row: 3, decision: { drop: true } })
  await expect(resolveChange({ ...who, row: 9, decision: { drop: true } })).rejects.toThrow('no row 9')
  await engine.finish()
  expect(await engine.rows()).toMatchObject([
    { state: 'done', outcome: 'resolved', answerId: 'add_77', resolvedBy: 'Ana' },
    { state: 'done', outcome: 'created', sends: 2, resolvedWhy: 'looked in the dashboard' },
    { state: 'dropped', outcome: 'dropped' },
    { state: 'done', outcome: 'created' },
  ])
  expect(copies(sandbox, 'addons', 'name').get('Addon 2')).toBe(1)
  const summary = await summarize(engine)
  expect(summary.counts).toMatchObject({ done: 3, skipped: 1, parked: 0 })
  expect(verdictOf({ kind: 'create-addon', summary })).toEqual({
    verdict: 'unproven',
    // Also the one sent again: its answer says nothing of the first request, which a person took for lost.
    reasons: ['3 resolved by a person'],
    inDoubt: false,
    by: 'answer',
  })
  // A resume too: it may be parked because no look found the subscription again.
  expect(verdictOf({ kind: 'resume-subscription', summary, listProven: true }).reasons).toContain(
    '2 resolved by a person',
  )
})

test('a verdict is proven only where nothing is left and the service itself says what was done', async () => {
  const counts = { staged: 0, done: 3, rejected: 1, unknown: 0, parked: 0, skipped: 0, notTried: 0 }
  const summary = { counts, outcomes: { created: 3, refused: 1 }, doneWithoutId: 0, doneResolved: 0 }
  const of = (options: Partial<Parameters<typeof verdictOf>[0]>) =>
    verdictOf({ kind: 'create-addon', summary, ...options })
  expect(of({})).toEqual({ verdict: 'proven', reasons: [], inDoubt: false, by: 'answer' })
  expect(of({ summary: { ...summary, doneWithoutId: 1 } }).verdict).toBe('unproven')
  for (const left of ['staged', 'unknown', 'parked', 'notTried'] as const)
    expect(of({ summary: { ...summary, counts: { ...counts, [left]: 2 } } }).reasons).toHaveLength(1)
  expect(of({ kind: 'create-retention' }).reasons).toEqual(['the audit did not run'])
  expect(of({ kind: 'resume-subscription', listProven: true })).toMatchObject({
    verdict: 'proven',
    by: 'lookup',
  })
  expect(of({ kind: 'resume-subscription', listProven: false }).verdict).toBe('unproven')
})

/** A run whose updates were made, each without an answer, and wait to be sent once more. */
async function loseReplies() {
  const rows = (sandbox: Sandbox) => contactRows(sandbox, 2, { phone: '+5691' })
  const { engine } = await startRun(changeKinds['update-contact'], rows, {
    counts: { customers: 5 },
    faults: [{ kind: 'reset', effect: 'done', on: 'PATCH /contacts/{id}/' }],
    settleMs: 0,
  })
  await engine.send()
  await engine.settle()
  const lost = { state: 'staged', outcome: 'repeatable' }
  expect(await engine.rows()).toMatchObject([lost, lost])
  return engine
}

test('an update whose reply was lost is unknown in the report until it was sent once more, and never not tried', async () => {
  const { ledger, run } = await loseReplies()
  expect((await summarize({ ledger, run })).counts).toMatchObject({ unknown: 2, staged: 0 })
  expect(await closeUntried({ ledger, run, why: 'at most 3' })).toBe(0)
  expect((await summarize({ ledger, run })).counts).toMatchObject({ unknown: 2, notTried: 0 })
})

test('a further send that never left does not hide what an earlier one may have done', async () => {
  const engine = await loseReplies()
  const facts = async () => (await engine.rows()).map(({ outcome, sends, error }) => [outcome, sends, error])
  const before = await facts()
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
    code: 'ENOSPC',
    syscall: 'write',
  })
  // The disk takes the claim and not its mark.
  const claim: Ledger['claim'] = async (options) => {
    await engine.ledger.claim(options)
    throw full
  }
  await expect(engine.send({ ledger: { ...engine.ledger, claim } })).rejects.toBe(full)
  expect(await facts()).toEqual(before)
})
