import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import { openState } from '../../core/state/open.ts'
import { findWorkers, type SeenWorker } from '../../core/state/postgres/membership.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { parseWorkerIdentity } from '../../worker/worker-identity.ts'

/** Who works on a run. */
export interface RunWorkersNow {
  /** The workers of its steps under way, as `pid@host`. */
  workedOnBy: string[]
  /** The workers of the state on PostgreSQL that are alive; absent for a state in the data folder. */
  aliveWorkers?: SeenWorker[]
}

/** Asks Temporal who works on a run and the runs it has started, and the state which workers are alive. */
export async function findRunWorkers(options: {
  client: Client
  description: WorkflowExecutionDescription
  settings: Pick<Settings, 'state'>
}): Promise<RunWorkersNow> {
  const { client, description, settings } = options
  const [workedOnBy, aliveWorkers] = await Promise.all([
    findWorking(client, description),
    // Without the state, the rest is worth showing.
    findAlive(settings.state).catch(() => undefined),
  ])
  return { workedOnBy: [...new Set(workedOnBy)].toSorted(), ...(aliveWorkers && { aliveWorkers }) }
}

async function findWorking(client: Client, { raw }: WorkflowExecutionDescription): Promise<string[]> {
  const own = (raw.pendingActivities ?? []).flatMap(({ lastStartedTime, lastWorkerIdentity }) =>
    lastStartedTime ? (parseWorkerIdentity(lastWorkerIdentity ?? '')?.worker ?? []) : [],
  )
  const children = (raw.pendingChildren ?? []).map(async ({ workflowId, runId }) => {
    const child = await client.workflow.getHandle(workflowId ?? '', runId ?? '').describe()
    return await findWorking(client, child)
  })
  return [...own, ...(await Promise.all(children)).flat()]
}

async function findAlive(place: Settings['state']): Promise<SeenWorker[] | undefined> {
  if (place.database === undefined) return undefined
  const state = await openState({ ...place, readOnly: true })
  try {
    return state.shared && (await findWorkers(state.shared))
  } finally {
    await state.close()
  }
}

/** Empty where nobody works on it and there is one worker at most. */
export function describeRunWorkers({ workedOnBy, aliveWorkers }: RunWorkersNow): string[] {
  return [
    ...(workedOnBy.length === 0 ? [] : [`Worked on by ${workedOnBy.join(' and ')}.`]),
    ...(aliveWorkers === undefined ? [] : [`Workers: ${describeWorkers(aliveWorkers)}.`]),
  ]
}

/** Which workers are alive, and when each was seen. */
export function describeWorkers(workers: readonly SeenWorker[]): string {
  const seen = workers.map(({ worker, ms }) => `${worker} (seen ${Math.ceil(ms / 1000)} s ago)`)
  return seen.length === 0 ? 'none is alive' : seen.join(' and ')
}
