import type { RunWorkers } from '../core/runs/name.ts'
import type { State } from '../core/state/open.ts'
import { findWorkers, workerName } from '../core/state/postgres/membership.ts'

/** For the result of a step; empty for a state in the data folder, which has one worker. */
export async function seeWorkers({ shared }: State): Promise<{ workers?: RunWorkers }> {
  if (shared === undefined) return {}
  // Only for people: a step does not fail without it.
  const seen = await findWorkers(shared).catch(() => [])
  return { workers: { worker: workerName(), alive: seen.map(({ worker }) => worker) } }
}
