import type { Client, WorkflowHandle } from '@temporalio/client'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImportInput } from '../../activities/import-input.ts'
import type { createSandbox } from '../../sandbox/sandbox.ts'

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

/**
 * The runs that are recorded, by the name of their file. A new workflow gets a scenario here; each ends with the
 * run whose history is kept. They are carried out in this order, on one data folder.
 */
export const scenarios: Readonly<Record<string, (place: Place) => Promise<Recorded>>> = {
  async 'export-data'(place) {
    const run = await begin(place, 'exportData', 'export-all', { resources: ['customers', 'plans'] })
    await run.result()
    return run
  },

  'export-resource': () => Promise.resolve({ workflowId: 'export-all/customers' }),

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

  'export-resource-steered': () => Promise.resolve({ workflowId: 'export-steered/customers' }),

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
      settleSeconds: 0.05,
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

  async 'deliver-notice'({ client }) {
    const query = "WorkflowType = 'deliverNotice' AND ExecutionStatus = 'Completed'"
    let found: Recorded | undefined
    await until(async () => {
      for await (const { workflowId } of client.workflow.list({ query })) found = { workflowId }
      return found !== undefined
    })
    return found!
  },

  async 'watch-exports'(place) {
    const run = await begin(place, 'watchExports', 'watch', {})
    await run.result()
    return run
  },
}
