import { cpSync, rmSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client'
import { expect, test, vi } from 'vitest'
import { type ImportPlan, leaseOf } from '../../core/imports/input.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import type { RecoveryPlan } from '../../core/recoveries/input.ts'
import type { SendStep } from '../../core/changes/send/step.ts'
import { repairState } from '../../scripts/commands/state.ts'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { addonsCsv, retentionsCsv } from '../system/import/world.ts'
import { newFolder, openSteps, toOpen, refOf, openRows, numbersIn, openRecovery } from './steps.ts'

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

test('a step sends at the rate that people have set since the run was opened', async () => {
  const steps = await openSteps()
  const slow = { kind: 'addons', requestsPerSecond: 0.05 } as const
  const plan = await openRows(steps, slow, undefined, addonsCsv(3))
  await steps.stage(plan)
  const sent = steps.send(plan, { limits: { ...plan.limits, requestsPerSecond: 500 }, seconds: 1 })
  expect(await sent).toMatchObject({ ended: 'finished', counts: { done: 3 } })
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

test('a recovery whose state and mark were put back after its last segment counts the resumes of which Temporal was told, so that the next one makes none', async () => {
  const { steps, plan } = await openRecovery({ attempts: 2, coolDown: '0s', firstWait: '0s' })
  const { sandbox, dataDir, worker } = steps
  sandbox.control.setFaults({ faults: [{ kind: 'fallBack', on: 'POST /subscriptions/{id}/resume/' }] })
  await steps.stage(plan)
  const backup = await newFolder()
  cpSync(dataDir, backup, { recursive: true })
  const { claims } = (await steps.send(plan)) as SendStep
  const resumes = () => sandbox.control.requests().filter(({ method }) => method === 'POST').length
  expect([claims, resumes()]).toEqual([10, 10])
  await worker.close()
  rmSync(dataDir, { recursive: true })
  cpSync(backup, dataDir, { recursive: true })
  await repairState({ place: { folder: dataDir } })
  const after = await openSteps({ sandbox, dataDir })
  await after.close(plan, { how: 'finished', claims })
  const request = {
    job: 'recovery',
    input: { attempts: 2, coolDown: '0s', firstWait: '0s' },
    firstRunId: 'r2',
  }
  const execution = { workflowId: 'r2', runId: 'r2' }
  const next = (await after.start('openRun', request, execution).result) as RecoveryPlan
  await after.stage(next)
  await after.send(next)
  expect(resumes()).toBe(10)
})

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
