import type { Client, WorkflowHandle } from '@temporalio/client'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImportInput } from '../../../core/imports/input.ts'
import type { RecoveryInput } from '../../../core/recoveries/input.ts'
import type { createSandbox } from '../../../sandbox/sandbox.ts'
import type { RecoveryProgress } from '../../../workflows/write-run/progress.ts'

interface Place {
  client: Client
  taskQueue: string
  dataDir: string
  sandbox: Awaited<ReturnType<typeof createSandbox>>
}

/** Which run's history is kept. */
interface Recorded {
  workflowId: string
  runId?: string
}

const begin = ({ client, taskQueue }: Place, workflow: string, workflowId: string, input?: unknown) =>
  client.workflow.start(workflow, { workflowId, taskQueue, args: input === undefined ? [] : [input] })

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}

const phaseIs = (run: WorkflowHandle, phase: string) =>
  until(async () => (await run.query<{ phase: string }>('status')).phase === phase)

/** What one request takes, in ms. */
function slowDown({ sandbox }: Place, ms: number): void {
  sandbox.control.setFaults({ faults: ms === 0 ? [] : [{ kind: 'latency', ms }] })
}

/** An import of retentions, one of which the service never answers for in a way that can be looked up. */
async function putSheet({ dataDir }: Place): Promise<string> {
  const rows = Array.from(
    { length: 24 },
    (_, at) => `sup_${at % 3},7,${at + 1},2026-03-01,Honorarios,1500.10`,
  )
  const text = ['supplier,document,number,date,lines.1.name,lines.1.amount', ...rows, ''].join('\n')
  await mkdir(join(dataDir, 'inbox'), { recursive: true })
  await writeFile(join(dataDir, 'inbox', 'rows.csv'), text)
  return join('inbox', 'rows.csv')
}

const person = { by: 'somebody', why: 'recorded' }

const resume = 'POST /subscriptions/{id}/resume/'

/** All subscriptions in needs_attention, the first of them the longest. */
function breakAll({ sandbox }: Place): string[] {
  const ids = sandbox.control.ids({ resource: 'subscriptions' }).map(String)
  for (const [at, id] of ids.entries()) {
    const needs_attention = `2026-11-20T10:00:${String(at + 10)}Z`
    const fields = { status: 'needs_attention', needs_attention, needs_attention_reason: 'gateway_issue' }
    sandbox.control.update({ resource: 'subscriptions', id, fields })
  }
  return ids
}

/** Looks after milliseconds. */
const recovery = {
  reasons: ['gateway_issue'],
  coolDown: 0,
  verifyAfter: '30ms',
  firstWait: '50ms',
} as const satisfies RecoveryInput

const waitsFor = (run: WorkflowHandle, question: string) =>
  until(async () => (await run.query<RecoveryProgress>('status')).waitingFor?.question === question)
const setRate = (run: WorkflowHandle, requestsPerSecond: number) =>
  run.executeUpdate('setLimits', { args: [{ requestsPerSecond, ...person }] })

/**
 * The runs that are recorded, by the name of their file. A new workflow gets a scenario here; each ends with the
 * run whose history is kept. They are carried out in this order, on one data folder.
 */
export const scenarios: Readonly<Record<string, (place: Place) => Promise<Recorded>>> = {
  async 'export-data'(place) {
    const run = await begin(place, 'exportData', 'export-all', {
      resources: ['customers', 'subscriptions', 'plans'],
      parallel: 1,
    })
    await run.result()
    return run
  },

  async 'export-data-ranges'(place) {
    const run = await begin(place, 'exportData', 'export-ranges', { resources: ['customers'] })
    await run.result()
    return run
  },

  async 'export-data-steered'(place) {
    slowDown(place, 150)
    const run = await begin(place, 'exportData', 'export-steered', { resources: ['customers'], maxPages: 3 })
    await phaseIs(run, 'running')
    await run.signal('pause')
    await phaseIs(run, 'paused')
    slowDown(place, 0)
    await run.signal('unpause')
    await run.result()
    return run
  },

  async 'export-data-stopped'(place) {
    slowDown(place, 150)
    const run = await begin(place, 'exportData', 'export-stopped', { resources: ['subscriptions'] })
    await phaseIs(run, 'running')
    await run.cancel()
    await run.result()
    slowDown(place, 0)
    return run
  },

  async 'export-data-refused'(place) {
    const run = await begin(place, 'exportData', 'export-refused', { resources: ['customer'] })
    await run.result().catch(() => undefined)
    return run
  },

  async 'publish-run'(place) {
    const run = await begin(place, 'publishRun', 'publish-all', {
      run: 'export-all',
      to: ['parquet', 'duckdb'],
    })
    await run.result()
    return run
  },

  async 'fetch-documents'(place) {
    const ids = ['501', '502', '999']
    const run = await begin(place, 'fetchDocuments', 'fetch-creditnotes', { documents: 'creditnotes', ids })
    await run.result()
    return run
  },

  async 'import-file'(place) {
    const input: ImportInput = {
      kind: 'retentions',
      file: await putSheet(place),
      canary: 2,
      confirmCanary: true,
      verifyAfter: 0.05,
    }
    place.sandbox.control.setFaults({
      faults: [{ kind: 'reset', effect: 'done', on: 'POST /retentions/', requests: [5] }],
    })
    const run = await begin(place, 'importFile', 'import-retentions', input)
    await phaseIs(run, 'waiting for approval')
    await run.executeUpdate('setLimits', { args: [{ concurrency: 2, ...person }] })
    await run.executeUpdate('approve', { args: [person] })
    await run.result()
    place.sandbox.control.setFaults({ faults: [] })
    return run
  },

  async 'recover-subscriptions'(place) {
    const run = await begin(place, 'recoverSubscriptions', 'recover', { dryRun: true })
    await run.result()
    return run
  },

  // Approved, a canary that lasts, a breaker that opens, gives up and is closed by a person.
  async 'recover-subscriptions-approved'(place) {
    const ids = breakAll(place).slice(1)
    place.sandbox.control.setFaults({ faults: [{ kind: 'fallBack', on: resume, ids }] })
    const input = { ...recovery, canary: 2, attempts: 2, maxFailureShare: 0.5, breakerWaits: ['50ms'] }
    const run = await begin(place, 'recoverSubscriptions', 'recover-approved', input)
    await waitsFor(run, 'approval')
    await setRate(run, 300)
    await run.executeUpdate('approve', { args: [person] })
    await waitsFor(run, 'breaker')
    place.sandbox.control.setFaults({ faults: [] })
    await run.executeUpdate('approve', { args: [person] })
    await run.result()
    return run
  },

  async 'recover-subscriptions-stopped'(place) {
    breakAll(place)
    slowDown(place, 150)
    const input = { ...recovery, approval: false, canary: 0, concurrency: 1, verifyAfter: '1s' }
    const run = await begin(place, 'recoverSubscriptions', 'recover-stopped', input)
    await phaseIs(run, 'sending')
    await run.signal('pause')
    await phaseIs(run, 'paused')
    await run.signal('unpause')
    const { length } = place.sandbox.control.effects()
    await until(() => Promise.resolve(place.sandbox.control.effects().length > length))
    await run.signal('stop')
    await run.result()
    slowDown(place, 0)
    return run
  },

  // Its history is long before the first resume, so that another execution continues it.
  async 'recover-subscriptions-continues'(place) {
    breakAll(place)
    const input = { ...recovery, canary: 0, eventsPerExecution: 50 }
    const run = await begin(place, 'recoverSubscriptions', 'recover-on', input)
    await waitsFor(run, 'approval')
    for (let rate = 301; rate <= 307; rate += 1) await setRate(run, rate)
    await run.executeUpdate('approve', { args: [person] })
    await run.result()
    return { workflowId: run.workflowId, runId: run.firstExecutionRunId }
  },

  'recover-subscriptions-continued': () => Promise.resolve({ workflowId: 'recover-on' }),

  async 'deliver-notification'({ client }) {
    const query = "WorkflowType = 'deliverNotification' AND ExecutionStatus = 'Completed'"
    let found: Recorded | undefined
    await until(async () => {
      for await (const { workflowId } of client.workflow.list({ query })) found = { workflowId }
      return found !== undefined
    })
    return found!
  },

  async 'watch-schedules'(place) {
    const run = await begin(place, 'watchSchedules', 'watch', {})
    await run.result()
    return run
  },
}
