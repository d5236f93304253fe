import { connector } from '../../core/runs/view/shell.ts'
import type { Client } from '@temporalio/client'
import type { Identity } from '../../core/runs/identity.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { findSearchAttributes, searchAttributeNames } from '../../worker/temporal-queries.ts'
import { awaitWorker, connect, namesServer, NoServerError, temporalPlace } from '../session/temporal.ts'
import { openClient, refuseOtherFolder, type SessionOptions } from '../session/session.ts'
import { RefusedError } from '../terminal/failures.ts'
import { type Finding, fine, runCheck, wrong } from './places.ts'

/** Checks that a worker with these settings is running; `served`: whether one of this data folder is. */
export async function checkTemporal(
  options: SessionOptions,
): Promise<{ findings: Finding[]; served: boolean }> {
  const { settings, terminal } = options
  let served = false
  const findings = await runCheck('temporal', async () => {
    const place = temporalPlace(settings)
    const client = await connect(place, terminal).catch((error: unknown) => {
      if (namesServer(settings) || !(error instanceof NoServerError)) throw error
      return undefined
    })
    if (client === undefined) return [{ check: 'temporal', status: 'notRunning', message: noServer }]
    const worker = runCheck('temporal', async () => {
      const { identity } = await awaitWorker({ client, settings, place, terminal })
      await refuseOtherFolder({ settings, identity }).catch((error: unknown) => {
        if (error instanceof RefusedError) throw error
        // The bucket or the state does not answer: they have checks of their own.
      })
      served = true
      return judgeWorker({ identity, settings })
    })
    const attributes = checkSearchAttributes({ client, namespace: place.namespace })
    try {
      return (await Promise.all([worker, attributes])).flat()
    } finally {
      await client.connection.close()
    }
  })
  return { findings, served }
}

const noServer = `No Temporal server is running. Start one with \`${connector`up`}\`, or start jobs with --local.`

function judgeWorker({ identity, settings }: { identity: Identity; settings: Settings }): string {
  const { taskQueue, billing } = settings
  const mode = billing.testMode ? 'test' : 'live'
  const differences = [
    [`${identity.mode.toUpperCase()} data`, `${mode.toUpperCase()} data`],
    [`the workspace ${identity.workspace}`, billing.workspace],
    [`the service at ${identity.baseUrl}`, billing.baseUrl],
  ].filter(([theirs, ours]) => !theirs?.endsWith(ours ?? ''))
  if (differences.length === 0) return `A worker for ${identity.workspace} listens on ${taskQueue}.`
  const both = differences.map(([theirs, ours]) => `${theirs}, not ${ours}`).join(' and ')
  throw new RefusedError(
    `The worker on ${taskQueue} acts on ${both}. Give this command and the worker the same settings, or each its own TEMPORAL_NAMESPACE.`,
  )
}

/** Finds those that `run list` needs; nothing where Temporal does not say. */
async function checkSearchAttributes(of: { client: Client; namespace: string }): Promise<Finding[]> {
  const { client, namespace } = of
  const found = await findSearchAttributes({ connection: client.connection, namespace })
  const missing = found === undefined ? [] : searchAttributeNames.filter((name) => !found.includes(name))
  if (missing.length === 0) return []
  return [
    wrong(
      'search attributes',
      `The namespace ${namespace} has no search attributes ${missing.join(', ')} of the right type: \`run list --verdict\` and ` +
        '`--needs-person` are refused. Create them as docs/deployment.md describes.',
    ),
  ]
}

/** Checks whether each open run of the task queue can resume with this version of the workflow code. */
export async function checkReplay(options: SessionOptions): Promise<Finding[]> {
  const { taskQueue, payloadKeys } = options.settings
  // Loaded late: only this check needs the worker's code.
  const { replayHistories } = await import('../../worker/workflow-bundle.ts')
  await using client = await openClient(options)
  const findings: Finding[] = []
  const results = replayHistories({ runs: openRuns({ client, taskQueue }), payloadKeys })
  for await (const { workflowId, error } of results) findings.push(toFinding(workflowId, error))
  return findings.length === 0 ? [fine('replay', `No run is open on ${taskQueue}.`)] : findings
}

async function* openRuns(of: { client: Client; taskQueue: string }) {
  const { client, taskQueue } = of
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
  for await (const { workflowId, runId } of client.workflow.list({ query }))
    yield { workflowId, history: await client.workflow.getHandle(workflowId, runId).fetchHistory() }
}

function toFinding(run: string, error: Error | undefined): Finding {
  if (error === undefined) return fine('replay', `The run ${run} can resume with this version.`)
  return wrong(
    'replay',
    `The run ${run} cannot resume with this version. Let it end, or stop it, before you upgrade. ` +
      `Its history departs from the code: ${detailOf(error)}`,
  )
}

/** Extracts the first difference from the SDK's message. */
const detailOf = ({ message }: Error) =>
  (/Nondeterminism error: (.*?)", source:/s.exec(message)?.[1] ?? message).slice(0, 300)
