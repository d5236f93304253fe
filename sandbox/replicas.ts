import type { Fault, Lag } from './faults.ts'
import { type ListName, listNames, type Mode } from './options.ts'
import { type Change, type Collection, RecordView, type World } from './store.ts'

/** A copy of a collection that receives every change later. */
function createReplica(collection: Collection, lag: Lag, now: () => number) {
  const copy = new RecordView([...collection.view.ordered('created')])
  const waiting: { change: Change; at: number }[] = []
  return {
    /** Stops receiving changes. */
    close: collection.onChange((change) => waiting.push({ change, at: now() })),
    /** The state that the replica has reached by now. */
    view() {
      const newest = lag.seconds === undefined ? Infinity : now() - lag.seconds * 1_000_000
      const due = waiting.slice(0, Math.max(0, waiting.length - (lag.changes ?? 0)))
      const end = due.findIndex(({ at }) => at > newest)
      for (const { change } of waiting.splice(0, end < 0 ? due.length : end)) copy.put(change)
      return copy
    },
  }
}

/** The replicas that faults use. They start when the fault is set, and lag from then on. */
export class Replicas {
  readonly #worlds: Record<Mode, World>
  readonly #now: () => number
  readonly #replicas = new Map<string, ReturnType<typeof createReplica>>()

  constructor(options: { worlds: Record<Mode, World>; now: () => number }) {
    this.#worlds = options.worlds
    this.#now = options.now
  }

  prepare(fault: Fault): void {
    if (fault.kind !== 'replica' && fault.kind !== 'staleCount') return
    const on = fault.on === undefined ? undefined : [fault.on].flat()
    for (const name of listNames.filter((list) => on?.includes(`GET /${list}/`) ?? true))
      for (const mode of ['live', 'test'] as const) this.view(mode, name, fault.lag)
  }

  /** Drops all replicas, for when the faults change: unused ones need no updates. */
  clear(): void {
    for (const replica of this.#replicas.values()) replica.close()
    this.#replicas.clear()
  }

  view(mode: Mode, name: ListName, lag: Lag): RecordView {
    const key = JSON.stringify([mode, name, lag.seconds, lag.changes])
    const known = this.#replicas.get(key)
    const replica = known ?? createReplica(this.#worlds[mode][name], lag, this.#now)
    this.#replicas.set(key, replica)
    return replica.view()
  }
}
