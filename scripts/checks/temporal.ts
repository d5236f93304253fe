import type { Client } from '@temporalio/client'
import type { Identity } from '../../core/runs/identity.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { openSession } from '../session/session.ts'
import { connect, NoServerError, temporalPlace } from '../session/temporal-place.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { fine, notRunning, runCheck, wrong, type Finding } from './finding.ts'

interface Options {
  settings: Settings
  terminal: Terminal
}

/**
 * Checks that a worker with these settings is running (`served`: whether one of this data folder is), and that no
 * runs wait on another task queue.
 */
export async function checkTemporal(options: Options): Promise<{ findings: Finding[]; served: boolean }> {
  let served = false
  const { environment } = options.settings
  const isConfigured = 'TEMPORAL_ADDRESS' in environment || 'TEMPORAL_PROFILE' in environment
  const worker = runCheck('temporal', async () => {
    const session = await openSession(options).catch((error: unknown) => {
      if (isConfigured || !(error instanceof NoServerError)) throw error
    })
    if (session === undefined)
      return [
        notRunning(
          'temporal',
          'No Temporal server is running. Start one with `connector up`, or give commands --local.',
        ),
      ]
    await session.close()
    served = true
    return [judgeWorker({ identity: session.identity, settings: options.settings })]
  })
  const findings = (await Promise.all([worker, checkWaiting(options)])).flat()
  return { findings, served }
}

function judgeWorker({ identity, settings }: { identity: Identity; settings: Settings }): Finding {
  const { taskQueue, billing } = settings
  const mode = billing.testMode ? 'test' : 'live'
  const differences = [
    [`${identity.mode.toUpperCase()} data`, `${mode.toUpperCase()} data`],
    [`the workspace ${identity.workspace}`, billing.workspace],
    [`the service at ${identity.baseUrl}`, billing.baseUrl],
  ].filter(([theirs, ours]) => !theirs?.endsWith(ours ?? ''))
  if (differences.length === 0)
    return fine('temporal', `A worker for ${identity.workspace} listens on ${taskQueue}.`)
  const both = differences.map(([theirs, ours]) => `${theirs}, not ${ours}`).join(' and ')
  return wrong(
    'temporal',
    `The worker on ${taskQueue} acts on ${both}. Give this command and the worker the same settings, or each its own CONNECTOR_TASK_QUEUE.`,
  )
}

const runTypes = ['exportData', 'importFile', 'publishRun', 'recoverSubscriptions', 'fetchDocuments']

const mostRuns = 100

/** Finds runs on a task queue without a worker: the UI's start form has people type its name. */
async function checkWaiting({ settings }: Options): Promise<Finding[]> {
  const place = temporalPlace(settings)
  // If Temporal cannot be reached, the other check reports it.
  const client = await connect(place).catch(() => undefined)
  if (client === undefined) return []
  try {
    const waiting = await findWaiting({ client, namespace: place.namespace, own: settings.taskQueue })
    return waiting.map(({ run, taskQueue }) =>
      wrong(
        'runs',
        `The run ${run} waits on the task queue ${taskQueue}, which has no worker. Terminate it in the Temporal UI ` +
          `and start it again on ${settings.taskQueue}, or start a worker for ${taskQueue}.`,
      ),
    )
  } catch {
    return []
  } finally {
    await client.connection.close()
  }
}

async function findWaiting(options: { client: Client; namespace: string; own: string }) {
  const { client, namespace, own } = options
  const types = runTypes.map((type) => `'${type}'`).join(', ')
  const query = `WorkflowType IN (${types}) AND ExecutionStatus = 'Running' AND TaskQueue != '${own}'`
  const served = new Map<string, boolean>()
  const waiting: { run: string; taskQueue: string }[] = []
  let seen = 0
  for await (const { workflowId: run, runId, taskQueue } of client.workflow.list({ query })) {
    if (!served.has(taskQueue)) served.set(taskQueue, await hasPollers({ client, namespace, taskQueue }))
    if (served.get(taskQueue) === false && (await isUntouched({ client, run, runId })))
      waiting.push({ run, taskQueue })
    if (++seen === mostRuns) break
  }
  return waiting
}

async function hasPollers(options: { client: Client; namespace: string; taskQueue: string }) {
  const { client, namespace, taskQueue } = options
  const asked = { namespace, taskQueue: { name: taskQueue } }
  const { pollers } = await client.workflowService.describeTaskQueue(asked)
  return (pollers ?? []).length > 0
}

/** Whether no worker ever started the run. A started run waits for its own worker, which may be restarting. */
async function isUntouched({ client, run, runId }: { client: Client; run: string; runId: string }) {
  const { historyLength } = await client.workflow.getHandle(run, runId).describe()
  return historyLength <= 2
}
