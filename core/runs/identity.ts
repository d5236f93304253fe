import { WrongWorker } from './errors.ts'
import type { Mode } from '../state/schema.ts'

/**
 * The workspace and service that a run belongs to, recorded when it starts; every later step compares it with its worker's own.
 */
export interface Identity {
  workspace: string
  baseUrl: string
  mode: Mode
  /** `State.storeId`. */
  store: string
}

/**
 * Describes the difference between a run's identity and a worker's in one sentence; undefined if there is
 * none. With a difference the run must not continue: it would write to another workspace, or with a ledger
 * that lacks what was sent.
 */
export function differenceOf({ run, worker }: { run: Identity; worker: Identity }): string | undefined {
  const differences = [
    ...(run.workspace === worker.workspace ? [] : [`workspace ${run.workspace}, not ${worker.workspace}`]),
    ...(run.baseUrl === worker.baseUrl ? [] : [`the service at ${run.baseUrl}, not ${worker.baseUrl}`]),
    ...(run.mode === worker.mode ? [] : [`${run.mode} mode, not ${worker.mode}`]),
    ...(run.store === worker.store ? [] : [`the state store ${run.store}, not ${worker.store}`]),
  ]
  if (differences.length === 0) return undefined
  return (
    `This run was started for ${differences.join(' and ')}. ` +
    `Give the worker the settings and the data folder that it was started with, or start a new run.`
  )
}

/**
 * Rejects a run that another worker has to serve.
 *
 * @throws {WrongWorker}
 */
export function refuseOther(identities: { run: Identity; worker: Identity }): void {
  const difference = differenceOf(identities)
  if (difference !== undefined) throw new WrongWorker(difference)
}
