import type { WorkflowExecutionDescription } from '@temporalio/client'
import { openState } from '../../core/state/open.ts'
import { findWorkers, type SeenWorker } from '../../core/state/postgres/membership.ts'
import { type HeldUp, heldUp } from './held-up.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { parseWorkerIdentity } from '../../worker/identity.ts'

/** Who works on a run, and what holds it up. */
export interface RunWorkersNow {
  heldUp: HeldUp[]
  /** The workers of its steps under way, as `pid@host`. */
  workedOnBy: string[]
  /** The workers of the state on PostgreSQL that are alive; absent for a state in the data folder. */
  aliveWorkers?: SeenWorker[]
}

/** Tells who works on a run, and asks the state which workers are alive. */
export async function findRunWorkers(options: {
  description: WorkflowExecutionDescription
  settings: Pick<Settings, 'state'>
}): Promise<RunWorkersNow> {
  const { description, settings } = options
  // Without the state, the rest is worth showing.
  const aliveWorkers = await findAlive(settings.state).catch(() => undefined)
  return {
    heldUp: heldUp(description),
    workedOnBy: [...new Set(workersOf(description))].toSorted(),
    ...(aliveWorkers && { aliveWorkers }),
  }
}

const workersOf = ({ raw }: WorkflowExecutionDescription): string[] =>
  (raw.pendingActivities ?? []).flatMap(({ lastStartedTime, lastWorkerIdentity }) =>
    lastStartedTime ? (parseWorkerIdentity(lastWorkerIdentity ?? '')?.worker ?? []) : [],
  )

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
export function describeRunWorkers({ workedOnBy, aliveWorkers }: Omit<RunWorkersNow, 'heldUp'>): string[] {
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
