/** The workers of a run as one of its steps saw them at its end, where several may share the state. */
export interface RunWorkers {
  /** The worker of the step, as `pid@host`. */
  worker: string
  /** All that were alive. */
  alive: string[]
}
