import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { type ImportPlan } from '../../core/imports/input.ts'
import { writeCheckpoint } from '../../core/changes/staged-changes.ts'
import { cached } from '../../core/storage/cached.ts'
import { retentionsCsv } from '../system/import/world.ts'
import { openSteps, type Steps, openRows, openDone, numbersIn, openRecovery } from './steps.ts'

/** The staging reaches the ledger, and its worker is lost before it knows. */
async function loseStaging({ worker, stage: stageRun }: Steps, plan: ImportPlan) {
  const { ledger } = worker.state
  const { stage } = ledger
  ledger.stage = async (options) => {
    await stage(options)
    ledger.stage = stage
    throw new Error('the worker is lost')
  }
  await expect(stageRun(plan)).rejects.toThrow('the worker is lost')
}

const theirs = { supplier: 'sup_2', document: 9, number: 2, date: '2026-03-01', total: '2.50' }

test.each(['skip', 'refuse', 'create'] as const)(
  'a retention that somebody creates after an attempt to stage it was lost is seen by the next attempt: --existing %s',
  async (existing) => {
    const steps = await openSteps()
    const plan = await openRows(steps, { existing })
    await loseStaging(steps, plan)
    const id = String(steps.sandbox.control.insert({ resource: 'retentions', fields: theirs }))
    const staged = steps.stage(plan)
    if (existing === 'refuse') {
      const message = expect.stringContaining('1 of 5 rows already exist in the service')
      await expect(staged).rejects.toMatchObject({ type: 'RowsTaken', message })
      return expect(numbersIn(steps)).toEqual([2])
    }
    expect(await staged).toMatchObject({ open: existing === 'skip' ? 4 : 5 })
    const row = await steps.worker.state.ledger.row({ run: plan.run, row: 3 })
    const before = JSON.stringify({ ids: [id] })
    if (existing === 'create') return expect(row).toMatchObject({ state: 'staged', before })
    const error = expect.stringContaining(id)
    expect(row).toMatchObject({ state: 'dropped', outcome: 'existed', holdsKey: 0, claims: 0, error })
    await steps.send(plan)
    return expect(numbersIn(steps)).toEqual([1, 2, 3, 4, 5])
  },
)

test('of two rows with the same key, neither is sent, and both are rejected', async () => {
  const steps = await openSteps()
  const csv = retentionsCsv(5)
  const again = csv.trimEnd().split('\n').at(2)
  const plan = await openRows(steps, { onInvalid: 'skip' }, undefined, `${csv.trimEnd()}\n${again}\n`)
  expect(await steps.stage(plan)).toMatchObject({ invalid: 2, open: 4 })
  await steps.send(plan)
  expect(numbersIn(steps)).toEqual([1, 3, 4, 5])
  for (const row of [3, 7])
    expect(await steps.worker.state.ledger.row({ run: plan.run, row })).toMatchObject({
      state: 'rejected',
      outcome: 'invalid',
    })
})

test.each(['refuse', 'skip', 'create'] as const)(
  'a file is refused if neither the list nor its filters show which rows the service has, unless all are created anyway: --existing %s',
  async (existing) => {
    const steps = await openSteps()
    for (const number of [901, 902, 903])
      steps.sandbox.control.insert({
        resource: 'retentions',
        fields: { ...theirs, number },
        created: (Date.now() + number) * 1_000,
      })
    const on = 'GET /retentions/'
    steps.sandbox.control.setFaults({
      faults: [
        { kind: 'ignoreOrdering', on },
        { kind: 'ignoreFilters', on },
      ],
    })
    const staged = steps.stage(await openRows(steps, { existing }))
    if (existing === 'create')
      expect(await staged).toMatchObject({ open: 5, existingReasons: [expect.any(String)] })
    else
      await expect(staged).rejects.toMatchObject({
        type: 'RowsTaken',
        message: expect.stringMatching(/^It is not known which rows .* --existing create\.$/),
      })
  },
)

test.each(['refuse', 'skip'] as const)(
  'a row to send again is sent although an attempt to stage it was lost, and although the service has the first one: --existing %s',
  async (existing) => {
    const steps = await openSteps()
    await openDone(steps)
    expect(numbersIn(steps)).toEqual([1, 2, 3, 4, 5])
    const plan = await openRows(steps, { sendAgain: [3], existing }, 'r2')
    await loseStaging(steps, plan)
    expect(await steps.stage(plan)).toMatchObject({ open: 1 })
    await steps.send(plan)
    expect(numbersIn(steps)).toEqual([1, 2, 2, 3, 4, 5])
  },
)

test.each(['refuse', 'create', 'accepted earlier'] as const)(
  'a retention that no run created is not taken for that of a row to send again, unless an earlier run accepted it: --existing %s',
  async (existing) => {
    const steps = await openSteps()
    const insert = () => String(steps.sandbox.control.insert({ resource: 'retentions', fields: theirs }))
    if (existing === 'accepted earlier') insert()
    await openDone(steps, existing === 'accepted earlier' ? { existing: 'create' } : {})
    if (existing === 'accepted earlier') {
      const plan = await openRows(steps, { sendAgain: [3] }, 'r2')
      return expect(await steps.stage(plan)).toMatchObject({ open: 1 })
    }
    const id = insert()
    const plan = await openRows(steps, { sendAgain: [3], existing }, 'r2')
    const staged = steps.stage(plan)
    if (existing === 'refuse') {
      const message = expect.stringContaining(`1 of 1 rows already exist in the service (as ${id})`)
      return await expect(staged).rejects.toMatchObject({ type: 'RowsTaken', message })
    }
    await staged
    const row = await steps.worker.state.ledger.row({ run: plan.run, row: 3 })
    return expect(row).toMatchObject({ state: 'staged', before: JSON.stringify({ ids: [id] }) })
  },
)

test('the audit starts before the search for existing retentions, so that one of the two finds what is created meanwhile', async () => {
  const steps = await openSteps()
  const plan = await openRows(steps)
  const { control } = steps.sandbox
  const insert = (number: number, secondsAgo: number) =>
    control.insert({
      resource: 'retentions',
      fields: { ...theirs, number },
      created: (Date.now() - 1_000 * secondsAgo) * 1_000,
    })
  const first = insert(900, 20)
  const { created } = control.get({ resource: 'retentions', id: first })!
  let isCreated = false
  steps.worker.gate.onTraffic(() => {
    // The search asks for the number of records, and then for both ends of the list.
    const answered = control.requests().filter(({ url, status }) => /retentions/.test(url) && status === 200)
    if (isCreated || answered.length < 3) return
    isCreated = true
    insert(901, 10)
  })
  const staged = await steps.stage(plan)
  expect(isCreated).toBe(true)
  expect(staged).toMatchObject({ newestBefore: new Date(String(created)).toISOString() })
})

test.each(['import', 'recovery'] as const)(
  'the opening of a new %s does not give other rows the name of a run that a restored state does not know, though its folder shows that it is staged',
  async (job) => {
    const steps = await openSteps()
    const room = job === 'import' ? 'imports' : 'recoveries'
    const checkpoint = { run: 'import-1', staged: 5, notes: {} }
    const folder = join(steps.dataDir, room, 'import-1', 'staged', '1')
    await writeCheckpoint(cached(steps.dataDir), { folder, ...checkpoint })
    const opened =
      job === 'import' ? openRows(steps) : steps.start('openRun', { job, input: {}, firstRunId: 'r1' }).result
    await expect(opened).rejects.toMatchObject({
      type: 'OldLedgerError',
      message: expect.stringContaining('it lacks what is known of import-1'),
      nonRetryable: false,
    })
    expect(await steps.worker.state.notes.of('run import-1')).toEqual([])
  },
)

test('rows that a restored state has forgotten are not staged again: the folder of their run shows that they are', async () => {
  const steps = await openSteps()
  const plan = await openRows(steps)
  const folder = join(steps.dataDir, plan.folder, 'staged', '1')
  await writeCheckpoint(cached(steps.dataDir), { folder, run: plan.run, staged: 5, notes: {} })
  await expect(steps.stage(plan)).rejects.toMatchObject({
    type: 'OldLedgerError',
    message: expect.stringContaining(`it lacks 5 of 5 rows of ${plan.run}`),
  })
  expect(await steps.worker.state.ledger.counts(plan)).toEqual([])
})

async function openImport() {
  const steps = await openSteps()
  return { steps, plan: await openRows(steps) }
}

test.each([
  ['an import', openImport],
  ['a recovery', openRecovery],
])('%s of which the ledger has lost rows neither stages nor sends any', async (_, open) => {
  const { steps, plan } = await open()
  await steps.stage(plan)
  const db = new DatabaseSync(join(steps.dataDir, 'state.db'))
  db.prepare('delete from changes where run = ? and "row" in (1, 2, 3)').run(plan.run)
  db.close()
  const lost = { type: 'OldLedgerError', message: expect.stringMatching(/it lacks [23] of 5 rows/) }
  await expect(steps.stage(plan)).rejects.toMatchObject(lost)
  await expect(steps.send(plan)).rejects.toMatchObject(lost)
  expect(steps.sandbox.control.requests().filter(({ method }) => method === 'POST')).toEqual([])
})

test.each(['file', 'mapping'] as const)(
  'an import whose stored %s was changed stages nothing, and one of which it is gone says so',
  async (part) => {
    const steps = await openSteps()
    const plan = await openRows(steps)
    const path = join(steps.dataDir, plan[part])
    const original = await readFile(path)
    await writeFile(path, part === 'file' ? retentionsCsv(4) : '{"set":{}}')
    const damaged = `${join(steps.dataDir, plan.file)}, is damaged: it was truncated or changed`
    await expect(steps.stage(plan)).rejects.toThrow(damaged)
    expect(await Array.fromAsync(steps.worker.state.ledger.rows({ run: plan.run }))).toEqual([])
    await writeFile(path, original)
    await steps.stage(plan)
    await rm(path)
    const missing = `The stored copy of the import's file, ${path}, is missing. Put it`
    await expect(steps.close(plan, { how: 'stopped' })).rejects.toThrow(missing)
  },
)
