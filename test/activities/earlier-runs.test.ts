import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test, vi } from 'vitest'
import { type ImportInput, type ImportPlan, leaseOf } from '../../core/imports/input.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import { recordAnswer } from '../../core/changes/transitions.ts'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import { repairState } from '../../scripts/commands/state.ts'
import { type Sandbox, createSandbox } from '../../sandbox/sandbox.ts'
import { addonsCsv, retentionsCsv } from '../system/import/world.ts'
import {
  newFolder,
  openSteps,
  toOpen,
  refOf,
  openRows,
  openDone,
  startContacts,
  giveUpUpdates,
} from './steps.ts'

test('the audit of an import that is started again does not prove a row that is sent only then', async () => {
  const steps = await openSteps()
  const { start, worker, sandbox, dataDir } = steps
  const plan = await openDone(steps)
  const { run } = plan
  const { ledger } = worker.state
  const row = await ledger.row({ run, row: 3 })
  sandbox.control.delete({ resource: 'retentions', id: Number(row?.answerId) })
  await ledger.move({ id: row!.id, from: ['done'], patch: { state: 'parked', answerId: null } })
  await steps.prove(plan)
  await steps.close(plan, { how: 'finished' })
  const again = await openRows(steps, { onlyResolved: true }, 'r2')
  const decision = { id: 'u1', rows: [3], decision: { absent: true }, by: 'Ana', why: 'looked' }
  await start('resolveRow', { ...refOf(plan), ...decision }, { runId: 'r2' }).result
  await steps.send(again, { rows: [3] })
  const notes = createRunNotes(worker.state)
  const { result } = await writeImportReport({ ledger, notes, plan, dataDir })
  expect(result).toMatchObject({
    counts: { done: 5 },
    verdict: 'unproven',
    reasons: ['the audit did not run'],
  })
})

test('a row that a restored ledger has parked or as resolved is not sent a second time by the decision that sent it, and a person is told to look again', async () => {
  const steps = await openSteps()
  const { start, sandbox, dataDir } = steps
  sandbox.control.setFaults({
    faults: [{ kind: 'reset', effect: 'none', on: 'POST /addons/', requests: [1, 2] }],
  })
  const plan = await openDone(steps, { kind: 'addons' }, addonsCsv(3))
  const parked = [2, 3]
  expect(await steps.worker.state.ledger.page({ run: plan.run, state: 'parked', limit: 9 })).toMatchObject(
    parked.map((row) => ({ row })),
  )
  const decide = { ...refOf(plan), by: 'Ana', why: 'looked' }
  // Corrected later, after the backup.
  await start('resolveRow', { ...decide, why: 'saw it', id: 'u0', rows: [2], decision: { exists: '77' } })
    .result
  const restored = join(await newFolder(), 'state.db')
  const database = new DatabaseSync(join(dataDir, 'state.db'))
  database.exec(`vacuum into '${restored}'`)
  database.close()
  const decision = { ...decide, rows: parked, decision: { absent: true } }
  await start('resolveRow', { ...decision, id: 'u1' }).result
  expect(await steps.send(plan)).toMatchObject({ counts: { done: 3 } })
  await steps.worker.close()
  await Promise.all(['-wal', '-shm'].map((end) => rm(join(dataDir, `state.db${end}`), { force: true })))
  await copyFile(restored, join(dataDir, 'state.db'))
  await repairState({ place: { folder: dataDir } })
  const after = await openSteps({ sandbox, dataDir })
  const again = (id: string) => after.start('resolveRow', { ...decision, id }).result
  const { ledger } = after.worker.state
  const move = ledger.move.bind(ledger)
  ledger.move = vi
    .fn(move)
    .mockImplementationOnce(move)
    .mockRejectedValueOnce(new Error('the worker is lost'))
  await expect(again('u1')).rejects.toThrow('the worker is lost')
  await expect(again('u1')).rejects.toMatchObject({
    type: 'RestoredRowError',
    message: expect.stringContaining(
      `since these rows of ${plan.run} were parked or resolved: 2, 3. They may`,
    ),
    nonRetryable: true,
  })
  // As a Reset of the run repeats it.
  await expect(again('u1')).rejects.toMatchObject({ type: 'NotParkedError', nonRetryable: true })
  expect(await after.worker.state.ledger.page({ run: plan.run, state: 'staged', limit: 9 })).toEqual([])
  await again('u2')
  expect(await after.worker.state.ledger.page({ run: plan.run, state: 'staged', limit: 9 })).toHaveLength(2)
})

test('a file whose row an earlier run has done twice is not proven by skipping that row', async () => {
  const steps = await openSteps()
  const { worker, dataDir } = steps
  const first = await openDone(steps)
  const { ledger } = worker.state
  const row = (await ledger.row({ run: first.run, row: 3 }))!
  const late = { outcome: 'created', answerId: '999', answer: null, at: ledger.now() } as const
  expect(await recordAnswer({ ledger, row, ...late })).toEqual([row.answerId, '999'])
  await worker.state.leases.release({ name: leaseOf(first.run), owner: first.execution })
  const csv = `${retentionsCsv(5)}${retentionsCsv(1, { from: 6 }).split('\n')[1]}\n`
  const again = await openRows(steps, { done: 'skip' }, 'r2', csv)
  expect(await steps.stage(again)).toMatchObject({ doubtfulEarlier: 1, open: 1 })
  await steps.send(again)
  await steps.prove(again)
  const notes = createRunNotes(worker.state)
  const { result } = await writeImportReport({ ledger, notes, plan: again, dataDir })
  expect(result).toMatchObject({
    counts: { done: 6 },
    verdict: 'unproven',
    reasons: ['1 done by an earlier run, but in doubt there'],
  })
  // The findings name fields and values.
  expect(result.audit).not.toHaveProperty('first')
})

/** Imports of the first one, two and three rows: a person decides on the row of the first, whose replies were lost. */
async function decideThenImport(
  {
    kind,
    csvOf,
    on,
    decision,
  }: Pick<ImportInput, 'kind'> &
    Record<'on', string> & {
      csvOf: (rows: number) => string
      decision: object
    },
  sandbox?: Sandbox,
) {
  const steps = await openSteps(sandbox && { sandbox })
  const { start, worker, dataDir } = steps
  const { ledger, leases } = worker.state
  steps.sandbox.control.setFaults({ faults: [{ kind: 'reset', effect: 'done', on, requests: [1, 2, 3] }] })
  const results = []
  for (const rows of [1, 2, 3]) {
    const at = { runId: `r${rows}` }
    const plan = await openRows(steps, { kind, done: 'skip' }, at.runId, csvOf(rows))
    await steps.stage(plan)
    await steps.send(plan)
    const named = { ...refOf(plan), id: 'u1', by: 'Ana', why: 'looked', rows: [2], decision }
    if (rows === 1) await start('resolveRow', named, at).result
    steps.sandbox.control.setFaults({ faults: [] })
    await leases.release({ name: leaseOf(plan.run), owner: plan.execution })
    const notes = createRunNotes(worker.state)
    results.push((await writeImportReport({ ledger, notes, plan, dataDir })).result)
  }
  return { ...steps, later: results.slice(1) }
}

test.each([
  ['gave up', { drop: true }],
  ['said to be absent, and that its run left to the next one', { absent: true }],
])(
  'an addon with a lost reply that a person %s is not proven by a later run that sends it, nor by one that skips it',
  async (_, decision) => {
    const addons = { kind: 'addons', csvOf: addonsCsv, on: 'POST /addons/', decision } as const
    const { later, sandbox } = await decideThenImport(addons)
    expect([...sandbox.control.records({ resource: 'addons' })]).toHaveLength(4)
    const reasons = ['1 resolved by a person in an earlier run']
    const unproven = { verdict: 'unproven', inDoubt: false, reasons }
    expect(later).toMatchObject([
      { ...unproven, counts: { done: 2 } },
      { ...unproven, counts: { done: 3 } },
    ])
  },
)

test('an addon that a person said to be absent is proven neither by a later run that sends it again, nor by one that skips it', async () => {
  const steps = await openSteps()
  const { start, stage, send, worker, dataDir, sandbox } = steps
  const { ledger, leases } = worker.state
  const lost = { kind: 'reset', effect: 'done', on: 'POST /addons/', requests: [1] } as const
  sandbox.control.setFaults({ faults: [lost] })
  const reports = []
  for (const [index, input] of [{}, { sendAgain: [2] }, { done: 'skip' as const }].entries()) {
    const runId = `r${index}`
    const plan = await openRows(steps, { kind: 'addons', ...input }, runId, addonsCsv(index === 2 ? 2 : 1))
    await stage(plan)
    await send(plan)
    if (index === 0) {
      const decision = { id: 'u1', rows: [2], decision: { absent: true }, by: 'Ana', why: 'looked' }
      await start('resolveRow', { ...refOf(plan), ...decision }, { runId }).result
      await send(plan)
    }
    await leases.release({ name: leaseOf(plan.run), owner: plan.execution })
    const notes = createRunNotes(worker.state)
    reports.push((await writeImportReport({ ledger, notes, plan, dataDir })).result)
  }
  expect([...sandbox.control.records({ resource: 'addons' })]).toHaveLength(4)
  const earlier = { verdict: 'unproven', reasons: ['1 resolved by a person in an earlier run'] }
  expect(reports).toMatchObject([
    { verdict: 'unproven', reasons: ['1 resolved by a person'], counts: { done: 1 } },
    { ...earlier, counts: { done: 1 } },
    { ...earlier, counts: { done: 2 } },
  ])
})

test.each(['refuse', 'skip'] as const)(
  'an update that a spreadsheet has saved again, with its columns in another order and its values in another writing, is not sent twice: --done %s',
  async (done) => {
    const counts = { customers: 1, subscriptions: 1, plans: 1, retentions: 0, orders: 0 }
    const sandbox = await createSandbox({ counts })
    const [id = ''] = sandbox.control.ids({ resource: 'subscriptions' })
    const steps = await openSteps({ sandbox })
    const update = async (csv: string, runId?: string) =>
      await openRows(steps, { kind: 'update-subscriptions', done, decimal: '.' }, runId, csv)
    const first = await update(
      `id,note,custom_change,addons.1.addon,addons.1.quantity\n${id},Peri\u00f3dica,950.50,add_1,2\n`,
    )
    await steps.stage(first)
    expect(await steps.send(first)).toMatchObject({ counts: { done: 1 } })
    await steps.worker.state.leases.release({ name: leaseOf(first.run), owner: first.execution })
    const again = await update(
      `custom_change,addons.1.quantity,addons.1.addon,note,id\n950.5,2,add_1,Perio\u0301dica,${id}\n`,
      'r2',
    )
    const staged = steps.stage(again)
    if (done === 'skip') {
      expect(await staged).toMatchObject({ open: 0 })
      const [row] = await Array.fromAsync(steps.worker.state.ledger.rows(again))
      expect(row).toMatchObject({ state: 'dropped', outcome: 'doneEarlier' })
    } else
      await expect(staged).rejects.toThrow(`1 of 1 rows were done by the run ${first.run}. All 1 are done`)
    expect(sandbox.control.requests().filter(({ method }) => method === 'PATCH')).toHaveLength(1)
    const other = await update(
      `id,note,custom_change,addons.1.addon,addons.1.quantity\n${id},x,951,add_1,2\n`,
      'r3',
    )
    expect(await steps.stage(other)).toMatchObject({ open: 1 })
  },
)

test('an update that a person gave up is proven by a later run that sends it: twice is the same as once', async () => {
  const { sandbox, csvOf } = await startContacts()
  const updates = {
    kind: 'update-contacts',
    csvOf,
    on: 'PATCH /contacts/{id}/',
    decision: { drop: true },
  } as const
  const { later } = await decideThenImport(updates, sandbox)
  expect(later).toMatchObject([{ verdict: 'proven' }, { verdict: 'proven', counts: { done: 3 } }])
})

test('an update that waits to be sent again when its import gives up is sent with the others that remain, without a repair', async () => {
  const { start, stage, send, worker, next } = await giveUpUpdates({ why: 'more than 1 change failed' })
  expect(next).toEqual([expect.stringContaining('2 rows to fix'), 'to send the remaining 4'])
  const of = { workflowId: 'import-2', runId: 'r2' }
  const asked = { kind: 'update-contacts', file: 'inbox/rows.csv', canary: 0, done: 'skip' }
  const rest = (await start('openRun', toOpen(asked), of).result) as ImportPlan
  await stage(rest)
  await send(rest)
  expect(await worker.state.ledger.counts(rest)).toMatchObject([{ state: 'done', number: 6 }])
})
