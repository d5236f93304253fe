import { Client, Connection } from '@temporalio/client'
import { ApplicationFailure, defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import type { ImportProgress } from '../../../workflows/write-run/progress.ts'
import { idsOf, startFetch } from '../fetch/world.ts'
import { putFile, quick, retentionsCsv, startImport } from '../import/world.ts'
import {
  connectTemporal,
  createNamespace,
  createWorld,
  openTestWorker,
  openWorld,
  startRun,
  startTestWorker,
  until,
  type World,
} from '../export/world.ts'
import { breakSome, quick as soon, startRecovery, idsOf as subscriptionsOf } from '../recovery/world.ts'
import { exportPlan, importPlan, staged, startSteps } from './steps.ts'

let world: World
let client: Client
let close: () => Promise<void>

beforeAll(async () => {
  world = await openWorld({
    counts: { customers: 300, subscriptions: 20, plans: 3, retentions: 0, creditnotes: 5 },
    needsAttention: 0,
  })
  const worker = await openTestWorker(world)
  const connection = await Connection.connect({ address: inject('temporalAddress') })
  client = new Client({ connection })
  close = async () => {
    await connection.close()
    await worker.stop()
    await world.close()
  }
})
afterAll(() => close())

/** The runs of this world that a query of the Temporal UI finds, by id. */
async function found(query: string): Promise<string[]> {
  const ids: string[] = []
  const own = `TaskQueue = '${world.taskQueue}' AND ${query}`
  for await (const { workflowId } of client.workflow.list({ query: own })) ids.push(workflowId)
  return ids
}

describe('a run on a server with the search attributes', () => {
  test(
    'is found by what it proved, by what it read, and by whether somebody has to look at it',
    { tags: ['long'] },
    async () => {
      const proven = await startRun({ client, world, input: { resources: ['plans'] } })
      await proven.result()
      // Its report has a notice: the service sends a field that is not documented.
      const noticed = await startRun({ client, world, input: { resources: ['subscriptions'] } })
      expect(await noticed.result()).toMatchObject({
        exports: [{ warnings: [expect.stringContaining('new fields')] }],
      })
      const capped = await startRun({ client, world, input: { resources: ['customers'], maxPages: 2 } })
      await capped.result()
      const ids = [...idsOf(world, 'creditnotes'), '999']
      const fetch = await startFetch({ client, world, input: { documents: 'creditnotes', ids } })
      await fetch.result()
      const { workflowId: publish } = await client.workflow.start('publishRun', {
        workflowId: `publish-${proven.workflowId}`,
        taskQueue: world.taskQueue,
        args: [{ run: proven.workflowId, to: ['parquet'] }],
      })
      await client.workflow.getHandle(publish).result()
      // The list follows a moment behind the runs.
      await until(async () => (await found('Verdict = "proven"')).includes(publish))
      expect(new Set(await found('Verdict = "proven"'))).toEqual(
        new Set([proven, noticed, fetch].map(({ workflowId }) => workflowId).concat(publish)),
      )
      expect(await found('Verdict = "unproven" AND WorkflowType = "exportData"')).toEqual([capped.workflowId])
      // Unproven, and an id that does not exist.
      expect(new Set(await found('NeedsPerson = true'))).toEqual(
        new Set([capped.workflowId, fetch.workflowId]),
      )
      expect(new Set(await found('Resource = "plans"'))).toEqual(new Set([proven.workflowId, publish]))
    },
  )

  test('is found while it waits for somebody, and no more when it ended well', async () => {
    const file = await putFile(world, retentionsCsv(2))
    const input = { kind: 'retentions' as const, file, ...quick, approval: true }
    const run = await startImport({ client, world, input })
    const waits = async () => (await run.query<ImportProgress>('status')).waitingFor !== undefined
    await until(waits)
    const query = `Resource = "retentions" AND NeedsPerson =`
    await until(async () => (await found(`${query} true`)).includes(run.workflowId))
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'the totals are right' }] })
    expect(await run.result()).toMatchObject({ verdict: 'proven' })
    await until(async () => (await found(`${query} false AND Verdict = "proven"`)).includes(run.workflowId))
  })

  test('that recovers is found by what it ended in, and by whether somebody has to look at it', async () => {
    const [fine = ''] = subscriptionsOf(world)
    breakSome(world, { ids: [fine], reason: 'gateway_issue' })
    const start = (input: object) => startRecovery({ client, world, input: { ...soon, ...input } })
    const query = `Resource = "subscriptions" AND NeedsPerson =`
    const isFound = (words: string, { workflowId }: { workflowId: string }) =>
      until(async () => (await found(`${query} ${words}`)).includes(workflowId))
    const looks = await start({ dryRun: true, notifyAbove: 1 })
    await looks.result()
    await isFound('false AND Verdict = "dryRun"', looks)
    const isTold = await start({ dryRun: true, notifyAbove: 0 })
    await isTold.result()
    await isFound('true AND Verdict = "dryRun"', isTold)
    world.sandbox.control.setFaults({
      faults: [{ kind: 'error', status: 403, on: 'GET /subscriptions/', from: 2 }],
    })
    const fails = await start({})
    await expect(fails.result()).rejects.toMatchObject({ cause: { type: 'RecoveryFailed' } })
    await isFound('true AND Verdict = "failed"', fails)
    world.sandbox.control.setFaults({ faults: [] })
  })
})

test('a run that the UI starts like another one does not have its verdict', async () => {
  const verdict = defineSearchAttributeKey('Verdict', SearchAttributeType.KEYWORD)
  const run = await client.workflow.start('importFile', {
    workflowId: `like another ${world.workspace}`,
    taskQueue: world.taskQueue,
    args: [
      { kind: 'retentions', file: await putFile(world, retentionsCsv(3, { from: 90 })), approval: true },
    ],
    typedSearchAttributes: [{ key: verdict, value: 'proven' }],
  })
  await until(async () => (await run.query<ImportProgress>('status')).waitingFor !== undefined)
  expect((await run.describe()).typedSearchAttributes.get(verdict)).toBeUndefined()
  await run.terminate()
})

test('a run that is refused while it opens is found as failed, and as one for a person unless that person sees it', async () => {
  const refuse = (on: string) => [{ kind: 'error', status: 403, on, from: 1 } as const]
  world.sandbox.control.setFaults({ faults: [...refuse('GET /subscriptions/'), ...refuse('GET /plans/')] })
  const wrong = { kind: 'retentions', file: 'no such file.csv' } as const
  const input = { resources: ['plans' as const] }
  const scheduleId = `refused ${world.workspace}`
  const nightly = await client.schedule.create({
    scheduleId,
    spec: {},
    action: { type: 'startWorkflow', workflowType: 'exportData', taskQueue: world.taskQueue, args: [input] },
  })
  onTestFinished(() => nightly.delete())
  await nightly.trigger()
  const runs = [
    [await startRecovery({ client, world, input: soon }), false],
    [await startRun({ client, world, input }), false],
    // The rows of an import are those of its last run.
    [await startImport({ client, world, input: wrong }), true],
  ] as const
  const isFound = (isForPerson: boolean, whose: string) =>
    until(async () => {
      const query = `Verdict = "failed" AND NeedsPerson = ${isForPerson} AND ${whose}`
      return (await found(query)).length > 0
    })
  await isFound(true, `TemporalScheduledById = "${scheduleId}"`)
  for (const [run, isForPerson] of runs) {
    await expect(run.result()).rejects.toMatchObject({ name: 'WorkflowFailedError' })
    await isFound(isForPerson, `WorkflowId = "${run.workflowId}"`)
  }
  world.sandbox.control.setFaults({ faults: [] })
})

test('a run in a namespace without the search attributes sets none, and the next one sets them once they are added', async () => {
  const temporal = await createNamespace({ withAttributes: false })
  const bare = await createWorld({ counts: { customers: 1, plans: 3 } }, temporal)
  await startTestWorker(bare)
  const own = await connectTemporal(temporal)
  const setsAny = async () => {
    const handle = await startRun({ client: own, world: bare, input: { resources: ['plans'] } })
    expect(await handle.result()).toMatchObject({ verdict: 'proven' })
    const { events } = await handle.fetchHistory()
    return events?.some((event) => event.upsertWorkflowSearchAttributesEventAttributes) ?? false
  }
  expect(await setsAny()).toBe(false)
  // Temporal's own number of the type Keyword.
  const searchAttributes = { Verdict: 2 }
  const { operatorService } = own.connection
  await operatorService.addSearchAttributes({ namespace: bare.env.TEMPORAL_NAMESPACE, searchAttributes })
  // The same worker: what it found before does not last. The server shows them a moment later.
  await until(setsAny)
})

const takesNoMore = () => {
  throw ApplicationFailure.nonRetryable('the disk is full', 'DiskFullError')
}
const allowed = { searchAttributes: ['Verdict', 'NeedsPerson'] }

test.each([
  [
    'importFile',
    {
      openRun: () => ({ ...importPlan, ...allowed, dryRun: true }),
      stageRun: () => staged,
      closeRun: takesNoMore,
    },
  ],
  [
    'exportData',
    { openExport: () => ({ plan: exportPlan({ ...allowed, resources: [] }) }), closeExport: takesNoMore },
  ],
] as const)('%s that cannot write its report has failed and needs a person', async (workflow, steps) => {
  const { client, taskQueue } = await startSteps(steps)
  const run = await client.workflow.start(workflow, { taskQueue, workflowId: taskQueue, args: [{}] })
  await expect(run.result()).rejects.toMatchObject({ cause: { message: 'the disk is full' } })
  const { typedSearchAttributes } = await run.describe()
  const found = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value])
  expect(Object.fromEntries(found)).toMatchObject({ Verdict: 'failed', NeedsPerson: true })
})
