import type { Client } from '@temporalio/client'
import { replayHistories } from '../../worker/workflow-bundle.ts'
import { openClient, type SessionOptions } from '../session/session.ts'
import { fine, wrong, type Finding } from './finding.ts'

/** Checks whether each open run of the task queue can resume with this version of the workflow code. */
export async function checkReplay(options: SessionOptions): Promise<Finding[]> {
  const { taskQueue, payloadKeys } = options.settings
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
