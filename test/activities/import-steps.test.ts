import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { Client, Connection, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type ImportInput, type ImportPlan, leaseOf } from '../../core/imports/input.ts'
import type { RecoveryInput, RecoveryPlan } from '../../core/recoveries/input.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import { recordAnswer } from '../../core/changes/transitions.ts'
import { writeCheckpoint } from '../../core/changes/staged-changes.ts'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import { cached } from '../../core/storage/cached.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { repairState } from '../../scripts/commands/state.ts'
import { type Sandbox, createSandbox } from '../../sandbox/sandbox.ts'
import { type Attempt, openWorker } from '../chaos/histories/worker.ts'
import { addonsCsv, retentionsCsv } from '../system/import/world.ts'

const newFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'import-steps-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A worker whose steps are called as Temporal calls them. */
async function openSteps({
  files,
  mayWrite,
  ...existing
}: { files?: FileStore; mayWrite?: boolean; sandbox?: Sandbox; dataDir?: string } = {}) {
  const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }
  const { sandbox = await createSandbox({ counts }), dataDir = await newFolder() } = existing
  onTestFinished(() => sandbox.close())
  const client = new Client({ connection: Connection.lazy() })
  const worker = await openWorker({ sandbox, dataDir, settleMs: 20, readLagMs: 0, client, files, mayWrite })
  onTestFinished(() => worker.close())
  const start = (
    name: Parameters<typeof worker.start>[0]['name'],
    input: object,
    { workflowId = 'import-1', runId = 'r1', attempt = 1 } = {},
  ): Attempt =>
    worker.start({
      name,
      input,
      info: {
        workflowExecution: { workflowId, runId },
        scheduledTimestampMs: Date.now(),
        currentAttemptScheduledTimestampMs: attempt,
      },
    })
  const ofPlan =
    (name: 'stageRun' | 'sendRun' | 'proveRun' | 'closeRun') =>
    (plan: ImportPlan | RecoveryPlan, input: object = {}, attempt = 1) => {
      const limits = name !== 'closeRun' && { limits: plan.limits }
      const sending = name === 'sendRun' && { seconds: 60, breakers: {}, claims: 0 }
      const given = { ...refOf(plan), ...limits, ...sending, ...input }
      return start(name, given, { ...plan.execution, attempt }).result
    }
  const [stage, send] = [ofPlan('stageRun'), ofPlan('sendRun')]
  const [prove, close] = [ofPlan('proveRun'), ofPlan('closeRun')]
  return { sandbox, dataDir, worker, client, start, stage, send, prove, close }
}

type Steps = Awaited<ReturnType<typeof openSteps>>

const toOpen = (input: object) => ({ job: 'import', input, firstRunId: 'r1' })

const refOf = ({ run, identity }: ImportPlan | RecoveryPlan) => ({ run, identity })

async function openRows(
  { start, dataDir }: Steps,
  input: Partial<ImportInput> = {},
  runId?: string,
  csv = retentionsCsv(5),
) {
  await mkdir(join(dataDir, 'inbox'), { recursive: true })
  await writeFile(join(dataDir, 'inbox', 'rows.csv'), csv)
  const asked = { kind: 'retentions', file: 'inbox/rows.csv', canary: 0, ...input }
  return (await start('openRun', toOpen(asked), runId === undefined ? {} : { runId }).result) as ImportPlan
}

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

/** An import of five rows that are done. */
async function openDone(steps: Steps, input: Partial<ImportInput> = {}, csv?: string) {
  const plan = await openRows(steps, input, undefined, csv)
  await steps.stage(plan)
  await steps.send(plan)
  return plan
}

const theirs = { supplier: 'sup_2', document: 9, number: 2, date: '2026-03-01', total: '2.50' }

const numbersIn = ({ sandbox }: Steps) =>
  [...sandbox.control.records({ resource: 'retentions' })]
    .map((text) => (JSON.parse(text) as { number: number }).number)
    .toSorted((one, other) => one - other)

test('a run sends although a restored backup has the lease of an earlier one, which has ended', async () => {
  const steps = await openSteps()
  const plan = await openRows(steps)
  await steps.stage(plan)
  const { leases } = steps.worker.state
  const name = leaseOf(plan.run)
  await leases.release({ name, owner: plan.execution })
  const earlier = { ...plan.execution, runId: 'earlier' }
  await leases.take({ name, owner: earlier, isClosed: () => Promise.resolve(true) })
  const describe = () => Promise.reject(new WorkflowNotFoundError('gone', 'import-1', 'earlier'))
  steps.client.workflow.getHandle = () => ({ describe }) as unknown as WorkflowHandle
  expect(await steps.send(plan)).toMatchObject({ ended: 'finished' })
  expect(numbersIn(steps)).toEqual([1, 2, 3, 4, 5])
})

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

test('a step sends at the rate that people have set since the run was opened', async () => {
  const steps = await openSteps()
  const slow = { kind: 'addons', requestsPerSecond: 0.05 } as const
  const plan = await openRows(steps, slow, undefined, addonsCsv(3))
  await steps.stage(plan)
  const sent = steps.send(plan, { limits: { ...plan.limits, requestsPerSecond: 500 }, seconds: 1 })
  expect(await sent).toMatchObject({ ended: 'finished', counts: { done: 3 } })
})

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

test('an attempt that opens an import, is given up and wakes after a later one replaces nothing, and the input is kept once', async () => {
  const store = createFolderStore(await newFolder())
  await store.create('inbox/rows.csv', retentionsCsv(5))
  let opens = 0
  const later = Promise.withResolvers<void>()
  const files: FileStore = {
    ...store,
    async open(path) {
      opens += 1
      if (opens === 1) await later.promise
      return await store.open(path)
    },
  }
  const { worker, start, stage, close } = await openSteps({ files })
  const input = { kind: 'retentions', file: 'inbox/rows.csv', dryRun: true }
  const first = start('openRun', toOpen(input), { attempt: 1 }).result
  await expect.poll(() => opens).toBe(1)
  const plan = (await start('openRun', toOpen(input), { attempt: 2 }).result) as ImportPlan
  await stage(plan, {}, 3)
  await close(plan, { how: 'dryRun' }, 4)
  const notes = createRunNotes(worker.state)
  const before = await notes.read<ImportNotes>(plan.run)
  expect(before.ended?.how).toBe('dryRun')
  later.resolve()
  await expect(first).rejects.toMatchObject({ type: 'SupersededError', nonRetryable: false })
  expect(await notes.read(plan.run)).toEqual(before)
  expect((await store.list('imports/input')).map(({ path }) => path).toSorted()).toEqual(
    [plan.file, plan.mapping].toSorted(),
  )
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

/** A recovery of five subscriptions. */
async function openRecovery(input: RecoveryInput = {}) {
  const counts = { customers: 4, subscriptions: 5, plans: 2, retentions: 0, orders: 0 }
  const sandbox = await createSandbox({ counts, needsAttention: 0 })
  const fields = { status: 'needs_attention', needs_attention_reason: 'gateway_issue', cancelled: null }
  for (const id of sandbox.control.ids({ resource: 'subscriptions' }))
    sandbox.control.update({ resource: 'subscriptions', id, fields })
  const steps = await openSteps({ sandbox })
  const open = async (runId: string) => {
    const request = { job: 'recovery', input, firstRunId: runId }
    return (await steps.start('openRun', request, { workflowId: runId, runId }).result) as RecoveryPlan
  }
  return { steps, plan: await open('r1'), open }
}

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

test.each(['staged nothing', 'left a row in doubt'] as const)(
  'a recovery that %s and was terminated resumes nothing when it is reset after another one, which has used up the attempts',
  async (left) => {
    const hasRows = left === 'left a row in doubt'
    const input = { attempts: 2, coolDown: '0s', firstWait: hasRows ? '1h' : '0s' }
    const { steps, plan, open } = await openRecovery(input)
    const { sandbox, worker, stage, send } = steps
    const on = 'POST /subscriptions/{id}/resume/'
    const most = () => {
      const resumes = sandbox.control.requests().filter(({ method }) => method === 'POST')
      return Math.max(...Array.from(Map.groupBy(resumes, ({ url }) => url).values(), ({ length }) => length))
    }
    if (hasRows) {
      sandbox.control.setFaults({ faults: [{ kind: 'reset', effect: 'none', on }] })
      await stage(plan)
      await send(plan, { rows: [1] })
    } else {
      const { ledger } = worker.state
      ledger.stage = vi.fn(ledger.stage).mockRejectedValueOnce(new Error('the worker is lost'))
      await expect(stage(plan)).rejects.toThrow('the worker is lost')
    }
    const describe = () => Promise.reject(new WorkflowNotFoundError('terminated', 'r1', 'r1'))
    steps.client.workflow.getHandle = () => ({ describe }) as unknown as WorkflowHandle
    sandbox.control.setFaults({ faults: [{ kind: 'fallBack', on }] })
    const next = await open('r2')
    await stage(next)
    await send(next)
    await steps.close(next, { how: 'finished' })
    expect(most()).toBe(2)
    if (hasRows) {
      const decision = { id: 'u1', rows: [1], decision: { absent: true }, by: 'Ana', why: 'looked' }
      await steps.start('resolveRow', { ...refOf(plan), ...decision }, plan.execution).result
    }
    const message = expect.stringContaining('The run r2 has begun to do this')
    const refused = { type: 'Busy', message, nonRetryable: true }
    const staged = await stage(plan).catch((error: unknown) => error)
    const sent = await send(plan).catch((error: unknown) => error)
    expect([most(), staged, sent]).toMatchObject([2, refused, refused])
  },
)

test('the report of a dry run names the rows that are invalid, and why, but not what stands in them', async () => {
  const steps = await openSteps()
  const csv = retentionsCsv(3).replace('2026-03-01,3.50', 'tomorrow,3.50')
  const plan = await openRows(steps, { dryRun: true }, undefined, csv)
  await steps.stage(plan)
  await steps.close(plan, { how: 'dryRun' })
  const report = await readFile(join(steps.dataDir, plan.folder, 'report.json'), 'utf8')
  expect(JSON.parse(report)).toMatchObject({
    first: [{ row: 4, state: 'rejected', message: expect.stringContaining('is not a date') }],
  })
  // Both are passed on.
  const page = await readFile(join(steps.dataDir, plan.folder, 'report.html'), 'utf8')
  expect(page).toContain('is not a date')
  expect(report + page).not.toContain('tomorrow')
})

test('a header that may be somebody’s data is in the report of the totals, and not in what Temporal keeps', async () => {
  const steps = await openSteps()
  const email = 'juan.soto@ejemplo.cl'
  const csv = addonsCsv(3).replace('amount', email)
  await mkdir(join(steps.dataDir, 'inbox'))
  const mapping = 'inbox/mapping.json'
  await writeFile(join(steps.dataDir, mapping), JSON.stringify({ columns: { [email]: 'amount' } }))
  const plan = await openRows(steps, { kind: 'addons', mapping, dryRun: true }, undefined, csv)
  await steps.stage(plan)
  const kept = await steps.close(plan, { how: 'dryRun', giveUp: false })
  expect(await readFile(join(steps.dataDir, plan.folder, 'report.html'), 'utf8')).toContain(email)
  expect(JSON.stringify(kept)).toMatch(/6\.75/)
  expect(JSON.stringify(kept)).not.toContain(email)
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

test('a row that is resolved while others are sent leaves the run its rate', async () => {
  const steps = await openSteps()
  const { sandbox, start, stage, send } = steps
  const plan = await openRows(steps, { requestsPerSecond: 4 }, undefined, retentionsCsv(8))
  await stage(plan)
  const began = performance.now()
  const sending = send(plan)
  await vi.waitFor(() => expect(sandbox.control.counters().effects).toBeGreaterThan(0))
  const decision = { id: 'u1', rows: [1], decision: { absent: true }, by: 'Ana', why: 'looked' }
  await expect(start('resolveRow', { ...refOf(plan), ...decision }).result).rejects.toThrow('row 1')
  expect(await sending).toMatchObject({ counts: { done: 8 } })
  expect(performance.now() - began).toBeGreaterThan(1500)
})

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

test.each([
  ['closeRun', { how: 'stopped' }],
  ['skipRemaining', { why: 'a canary failed' }],
] as const)(
  'nothing of a run is sent once %s has ended, though the attempt that sends was not told to stop',
  async (close, end) => {
    const steps = await openSteps()
    const { control } = steps.sandbox
    const plan = await openRows(steps, { concurrency: 2 }, undefined, retentionsCsv(60))
    await steps.stage(plan)
    control.setFaults({ faults: [{ kind: 'latency', ms: 50 }] })
    const posts = () => control.requests().filter(({ method }) => method === 'POST').length
    const sending = steps.send(plan)
    await expect.poll(posts, { interval: 5 }).toBeGreaterThan(4)
    await steps.start(close, { ...refOf(plan), ...end }).result
    const sent = posts()
    expect(await sending).toMatchObject({ ended: 'stopped' })
    expect(posts()).toBe(sent)
    expect(await steps.worker.state.ledger.counts({ run: plan.run })).not.toContainEqual(
      expect.objectContaining({ state: 'sending' }),
    )
  },
)

test('the changes of a run are sent by no step of another one', async () => {
  const steps = await openSteps()
  const plan = await openRows(steps)
  await steps.stage(plan)
  const describe = () => Promise.resolve({ status: { name: 'RUNNING' } })
  steps.client.workflow.getHandle = () => ({ describe }) as unknown as WorkflowHandle
  const other = { ...plan, execution: { workflowId: 'import-2', runId: 'r2' } }
  await expect(steps.send(other)).rejects.toThrow('is already doing this')
  expect(numbersIn(steps)).toEqual([])
})

test('an attempt of an execution that was reset sends nothing when it wakes after the later execution has ended', async () => {
  const steps = await openSteps()
  const { leases } = steps.worker.state
  const plan = await openRows(steps)
  await steps.stage(plan)
  const describe = () => Promise.reject(new WorkflowNotFoundError('terminated', 'import-1', 'r1'))
  steps.client.workflow.getHandle = () => ({ describe }) as unknown as WorkflowHandle
  const [begun, later] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const take = leases.take.bind(leases)
  leases.take = async (of) => {
    leases.take = take
    begun.resolve()
    await later.promise
    return await take(of)
  }
  const first = steps.send(plan, {}, 2)
  await begun.promise
  await openRows(steps, {}, 'r2')
  await steps.start('closeRun', { ...refOf(plan), how: 'stopped' }, { runId: 'r2', attempt: 5 }).result
  later.resolve()
  await expect(first).rejects.toMatchObject({ type: 'SupersededError', nonRetryable: false })
  expect(numbersIn(steps)).toEqual([])
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

/** A service with contacts, and files that change the phones of the first ones. */
async function startContacts() {
  const counts = { customers: 20, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }
  const sandbox = await createSandbox({ counts })
  const ids = [...sandbox.control.records({ resource: 'customers' })].flatMap((text) =>
    (JSON.parse(text) as { contacts: { id: string }[] }).contacts.map(({ id }) => id),
  )
  const csvOf = (rows: number) =>
    ['id,phone', ...ids.slice(0, rows).map((id) => `${id},+5691`), ''].join('\n')
  return { sandbox, csvOf }
}

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

test('a report that an attempt has written, given up by Temporal, does not replace that of a later one when it wakes', async () => {
  const store = createFolderStore(await newFolder())
  await store.create('inbox/rows.csv', retentionsCsv(2))
  const { worker, start, stage, send, close } = await openSteps({ files: store })
  const input = { kind: 'retentions', file: 'inbox/rows.csv', canary: 0 }
  const plan = (await start('openRun', toOpen(input), { attempt: 1 }).result) as ImportPlan
  await stage(plan, {}, 2)
  const { ledger } = worker.state
  const rows = ledger.rows.bind(ledger)
  const [begun, later] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  ledger.rows = async function* freezing(which) {
    ledger.rows = rows
    begun.resolve()
    await later.promise
    yield* rows(which)
  }
  const first = close(plan, { how: 'stopped' }, 3)
  await begun.promise
  await send(plan, {}, 4)
  await close(plan, { how: 'finished' }, 5)
  const reported = async () =>
    JSON.parse((await store.readText(`${plan.folder}/report.json`)) ?? '{}') as { ended: { how: string } }
  expect((await reported()).ended.how).toBe('finished')
  later.resolve()
  await expect(first).rejects.toMatchObject({ type: 'SupersededError', nonRetryable: false })
  expect((await reported()).ended.how).toBe('finished')
})

test('what a run leaves for people is in the files that workers share, with the check, the findings and the sheet of a dry run', async () => {
  const store = createFolderStore(await newFolder())
  await store.create('inbox/rows.csv', retentionsCsv(2))
  const counts = { customers: 2, subscriptions: 2, plans: 1, retentions: 0, orders: 0 }
  const sandbox = await createSandbox({ counts, needsAttention: 1 })
  const { start, stage, send, prove, close } = await openSteps({ files: store, sandbox })
  const filesOf = async ({ folder }: ImportPlan | RecoveryPlan) =>
    (await store.list(folder)).map(({ path }) => path.slice(folder.length + 1))
  const input = { kind: 'retentions', file: 'inbox/rows.csv', canary: 0 }
  const plan = (await start('openRun', toOpen(input)).result) as ImportPlan
  await stage(plan)
  await send(plan)
  const [id = ''] = sandbox.control.ids({ resource: 'retentions' })
  sandbox.control.delete({ resource: 'retentions', id })
  await prove(plan)
  await close(plan, { how: 'finished' })
  expect(await filesOf(plan)).toEqual(
    expect.arrayContaining(['check.json', 'findings.jsonl', 'report.html', 'report.json', 'results.csv']),
  )
  const request = { job: 'recovery', input: { dryRun: true }, firstRunId: 'r1' }
  const recovery = (await start('openRun', request, { workflowId: 'recovery-1' }).result) as RecoveryPlan
  await stage(recovery)
  expect(await filesOf(recovery)).toEqual(['recovery.csv'])
})

test.each([true, false])(
  'an attempt to end a run, given up by Temporal, takes no row from a later one that sends when it wakes (of several workers: %s)',
  async (isShared) => {
    const steps = await openSteps()
    const { ledger } = steps.worker.state
    Object.assign(ledger, { isShared })
    const plan = await openRows(steps)
    await steps.stage(plan, {}, 2)
    const [moveAll, becomeSender] = [ledger.moveAll.bind(ledger), ledger.becomeSender.bind(ledger)]
    const [begun, later] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    ledger.moveAll = async (which) => {
      ledger.moveAll = moveAll
      begun.resolve()
      await later.promise
      return await moveAll(which)
    }
    const end = { how: 'finished', why: 'more than 1 change failed' }
    const first = steps.close(plan, end, 3).catch((error: unknown) => error)
    await begun.promise
    ledger.becomeSender = async (of) => {
      ledger.becomeSender = becomeSender
      const sender = await becomeSender(of)
      later.resolve()
      await first
      return sender
    }
    expect(await steps.send(plan, {}, 4)).toMatchObject({ counts: { done: 5 } })
    expect(await first).toMatchObject({ type: 'SupersededError', nonRetryable: false })
  },
)

/** An import of six updates that gave up after two were refused, while one that got no answer waited to be sent again. */
async function giveUpUpdates(end: object) {
  const { sandbox, csvOf } = await startContacts()
  const steps = await openSteps({ sandbox })
  const on = 'PATCH /contacts/{id}/'
  const lost = { kind: 'reset', effect: 'none', on, requests: [1] } as const
  const refused = { kind: 'refuse', answer: { phone: ['No.'] }, status: 400, on, from: 2 } as const
  sandbox.control.setFaults({ faults: [lost, refused] })
  const input = { kind: 'update-contacts', maxFailures: 1, concurrency: 1 } as const
  const plan = await openRows(steps, input, undefined, csvOf(6))
  await steps.stage(plan)
  const sent = await steps.send(plan)
  expect(sent).toMatchObject({ ended: 'maxFailures', counts: { unknown: 1, rejected: 2 } })
  const kept = await steps.close(plan, { how: 'finished', ...end })
  sandbox.control.setFaults({ faults: [] })
  const report = JSON.parse(await readFile(join(steps.dataDir, plan.folder, 'report.json'), 'utf8')) as {
    next: { text: string }[]
  }
  return { ...steps, kept, next: report.next.map(({ text }) => text) }
}

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

test('the next step after a failed canary has what the service said of a row that failed, not of one that is unknown, and Temporal keeps neither', async () => {
  const { next, kept } = await giveUpUpdates({ why: 'all rows of the canary failed', canary: true })
  expect(next).toEqual([expect.stringMatching(/^the rows that went first all failed \(.*No\./)])
  expect(JSON.stringify(kept)).toContain('the rows that went first all failed: correct')
  expect(JSON.stringify(kept)).not.toContain('No.')
})

test('a segment sends also if its preparation took all of its time', async () => {
  const steps = await openSteps()
  const plan = await openRows(steps)
  await steps.stage(plan)
  const { ledger } = steps.worker.state
  const known = ledger.known.bind(ledger)
  ledger.known = async (of) => {
    await wait(100)
    return await known(of)
  }
  expect(await steps.send(plan, { seconds: 0.05 })).toMatchObject({ ended: 'finished', counts: { done: 5 } })
})

test("another command's worker sends nothing of a run, but looks up what was sent, so that a stop ends the run", async () => {
  const steps = await openSteps({ mayWrite: false })
  const plan = await openRows(steps)
  await steps.stage(plan)
  await expect(steps.send(plan)).rejects.toThrow('this worker belongs to another command')
  const looked = await steps.send(plan, { lookupsOnly: true })
  expect(looked).toMatchObject({ ended: 'finished', counts: { staged: 5 } })
})
