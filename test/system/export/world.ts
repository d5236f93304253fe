import { Client, Connection, type WorkflowHandle } from '@temporalio/client'
import proto from '@temporalio/proto'
import { parse } from 'csv-parse/sync'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import { type ExportReport, isPublished } from '../../../core/exports/report.ts'
import type { Manifest } from '../../../core/destinations/manifest.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { endProcess } from '../../../core/state/process-identity.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { findWorker } from '../../../scripts/session/temporal.ts'
import { createSandbox } from '../../../sandbox/sandbox.ts'
import { readSettings, type Settings } from '../../../worker/settings/settings.ts'
import { startWorker } from '../../../worker/start-worker.ts'
import type { exportData } from '../../../workflows/export-run.ts'
import { addFact } from '../../facts.ts'
import { runProgram } from '../command-line/run-program.ts'

let worlds = 0

/** A world that is gone with the test. */
export async function createWorld(options: SandboxOptions = {}, temporal = suiteServer()) {
  const world = await openWorld(options, temporal)
  onTestFinished(() => world.close())
  return world
}

interface TemporalOfTests {
  address: string
  binary: string
  namespace?: string
}

/** The Temporal server of the suite. */
const suiteServer = (): TemporalOfTests => ({
  address: inject('temporalAddress'),
  binary: inject('temporalBinary'),
})

/** A new namespace of the suite's server, for `check`, which judges every run of a namespace. */
export async function createNamespace({ withAttributes = true } = {}): Promise<TemporalOfTests> {
  const namespace = `tests-${randomUUID()}`
  const connection = await Connection.connect({ address: suiteServer().address })
  const { workflowService } = connection
  const { Duration } = proto.google.protobuf
  try {
    const workflowExecutionRetentionPeriod = Duration.fromObject({ seconds: 86_400 })
    await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod })
    // The parts of the server learn of it one by one.
    const isKnown = () => workflowService.listWorkflowExecutions({ namespace }).then(Boolean, () => false)
    await until(isKnown)
    const attributes = { Verdict: 2, NeedsPerson: 5, Resource: 7 }
    if (withAttributes)
      await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: attributes })
  } finally {
    await connection.close()
  }
  return { ...suiteServer(), namespace }
}

/** A stand-in service, a data folder, and the environment that joins them. */
export async function openWorld(options: SandboxOptions = {}, temporal = suiteServer()) {
  worlds += 1
  const workspace = `acc_${process.pid}_${worlds}`
  const sandbox = await createSandbox({ seed: 7, workspace, ...options })
  const dataDir = await mkdtemp(join(tmpdir(), 'export-'))
  const close = async () => {
    await sandbox.close()
    // A command that was killed leaves its server to the next one; here there is none.
    const server = findServer(dataDir)
    if (server !== undefined) await endProcess({ identity: server, graceMs: 0 })
    await rm(dataDir, { recursive: true, force: true })
  }
  const env = {
    BILLING_BASE_URL: sandbox.url,
    BILLING_TOKEN: sandbox.token,
    BILLING_WORKSPACE: workspace,
    BILLING_REQUESTS_PER_SECOND: '500',
    // No run may look up sooner what got no answer.
    BILLING_SETTLE_SECONDS: '0.05',
    CONNECTOR_DATA_DIR: dataDir,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace ?? 'default',
  }
  return { sandbox, dataDir, env, workspace, taskQueue: `billing-${workspace}`, close }
}

export type World = Awaited<ReturnType<typeof openWorld>>

/** A worker in this process, stopped with the test; `changed` are settings that no variable has. */
export async function startTestWorker(
  world: World,
  more: Record<string, string> = {},
  changed: Partial<Settings> = {},
) {
  const worker = await openTestWorker(world, more, changed)
  onTestFinished(() => worker.stop())
  return worker
}

export async function openTestWorker(
  { env }: World,
  more: Record<string, string> = {},
  changed: Partial<Settings> = {},
) {
  const settings = { ...readSettings({ env: { ...env, ...more }, cwd: env.CONNECTOR_DATA_DIR }), ...changed }
  const connectionOptions = { address: env.TEMPORAL_ADDRESS }
  const temporal = { connectionOptions, namespace: env.TEMPORAL_NAMESPACE }
  return startWorker({ settings, temporal })
}

/** Until Temporal lists a worker on the task queue. Commands that need one wait for it; `check` does not. */
export async function workerListens({ env, dataDir }: World): Promise<void> {
  const settings = readSettings({ env, cwd: dataDir })
  const connection = await Connection.connect({ address: env.TEMPORAL_ADDRESS })
  const namespace = env.TEMPORAL_NAMESPACE
  const client = new Client({ connection, namespace })
  const place = { connectionOptions: {}, namespace }
  try {
    await until(async () => (await findWorker({ client, settings, place })) !== undefined)
  } finally {
    await connection.close()
  }
}

/** A command of the connector as a child process in the world's environment. */
export function startCommand(
  world: World,
  words: readonly string[],
  { env, ...how }: Omit<Partial<Parameters<typeof runProgram>[0]>, 'program' | 'words'> = {},
) {
  const program = 'scripts/start.js'
  return runProgram({ program, words, ...how, env: { ...world.env, ...env } })
}

/** The environment of a command that has everything of its own. */
export const local = { TEMPORAL_ADDRESS: '' } as const

/** After the end of its test, as by a timeout, it asks no more and never returns: other tests run in this process. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const fact = addFact(() => `It waited for ${condition.toString()}`)
  try {
    while (!(await condition())) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (!fact.isOfRunningTest()) await new Promise(() => {})
    }
  } finally {
    fact.remove()
  }
}

/** Requests that the service has had so far. */
export const asked = (world: World) => world.sandbox.control.counters().requests

export async function connectTemporal(
  { address, namespace = 'default' }: { address: string; namespace?: string } = suiteServer(),
) {
  const connection = await Connection.connect({ address })
  onTestFinished(() => connection.close())
  return new Client({ connection, namespace })
}

let runs = 0

export async function startRun(options: {
  client: Client
  world: World
  input?: ExportInput
  name?: string
}) {
  runs += 1
  const { client, world, input = {}, name = `export-${world.workspace}-${runs}` } = options
  return client.workflow.start<typeof exportData>('exportData', {
    workflowId: name,
    taskQueue: world.taskQueue,
    args: [input],
  })
}

/** Runs an export to its end. */
export async function runExport(world: World, input: ExportInput = {}, name?: string): Promise<ExportReport> {
  const client = await connectTemporal()
  return await (await startRun({ client, world, input, ...(name !== undefined && { name }) })).result()
}

/** Everything that a workflow's history says, with what its payloads carry: in JSON they are in base64. */
export async function historyOf(run: Pick<WorkflowHandle, 'fetchHistory'>): Promise<string> {
  const history = JSON.stringify(await run.fetchHistory())
  const payloads = [...history.matchAll(/"data":"([^"]+)"/g)]
  return [history, ...payloads.map(([, data = '']) => Buffer.from(data, 'base64').toString())].join('\n')
}

/** Where a run published a resource. */
export function folderOf(report: ExportReport, resource: string): string {
  const [published] = report.exports.filter((one) => one.resource === resource).filter(isPublished)
  if (published === undefined) throw new Error(`${resource}: ${report.summary}`)
  return published.where
}

/** The rows of a resource's main table as a run published them. */
export async function rowsOf(
  report: ExportReport,
  resource: string,
  table: string = resource,
): Promise<Record<string, string>[]> {
  const text = await readFile(join(folderOf(report, resource), `${table}.csv`), 'utf8')
  return parse(text, { columns: true })
}

/** The manifest of a resource in files. */
export const manifestOf = async (report: ExportReport, resource: string) =>
  JSON.parse(await readFile(join(folderOf(report, resource), 'manifest.json'), 'utf8')) as Manifest

/** Every published file of a folder with its bytes, but those that say when. */
export async function filesOf(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder))
    .filter((name) => !['manifest.json', 'report.html', 'certificate.jsonl'].includes(name))
    .toSorted()
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  return Object.fromEntries(names.map((name, at) => [name, texts[at] ?? '']))
}

/** As the Temporal UI does it: back to where the plan was made. */
export async function resetToPlan(client: Client, run: WorkflowHandle): Promise<void> {
  const { events } = await run.fetchHistory()
  const planned = events?.findIndex((event) => event.activityTaskCompletedEventAttributes) ?? -1
  const next = events?.slice(planned).find((event) => event.workflowTaskCompletedEventAttributes)
  await client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: run.workflowId },
    workflowTaskFinishEventId: next?.eventId ?? null,
    requestId: run.workflowId,
  })
}
