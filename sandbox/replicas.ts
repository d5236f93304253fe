import type { Fault, Lag } from './faults.ts'
import { type ListName, listNames, type Mode } from './options.ts'
import { type Change, type Collection, RecordView, type World } from './store.ts'

/** A copy of a collection that receives every change later. */
class Replica {
  readonly #view: RecordView
  readonly #waiting: { change: Change; at: number }[] = []
  readonly #lag: Lag
  readonly #now: () => number
  /** Stops receiving changes. */
  readonly close: () => void

  constructor(options: { collection: Collection; lag: Lag; now: () => number }) {
    this.#lag = options.lag
    this.#now = options.now
    this.#view = new RecordView([...options.collection.view.ordered('created')])
    this.close = options.collection.onChange((change) => this.#waiting.push({ change, at: this.#now() }))
  }

  /** The state that the replica has reached by now. */
  view(): RecordView {
    const { seconds, changes = 0 } = this.#lag
    const newest = seconds === undefined ? Infinity : this.#now() - seconds * 1_000_000
    const due = this.#waiting.slice(0, Math.max(0, this.#waiting.length - changes))
    const end = due.findIndex(({ at }) => at > newest)
    for (const { change } of this.#waiting.splice(0, end < 0 ? due.length : end)) this.#view.put(change)
    return this.#view
  }
}

/** The replicas that faults use. They start when the fault is set, and lag from then on. */
export class Replicas {
  readonly #worlds: Record<Mode, World>
  readonly #now: () => number
  readonly #replicas = new Map<string, Replica>()

  constructor(options: { worlds: Record<Mode, World>; now: () => number }) {
    this.#worlds = options.worlds
    this.#now = options.now
  }

  prepare(fault: Fault): void {
    if (fault.kind !== 'replica' && fault.kind !== 'staleCount') return
    const on = fault.on === undefined ? undefined : [fault.on].flat()
    for (const name of listNames) {
      if (on !== undefined && !on.includes(`GET /${name}/`)) continue
      this.view('live', name, fault.lag)
      this.view('test', name, fault.lag)
    }
  }

  /** Drops all replicas, for when the faults change: unused ones need no updates. */
  clear(): void {
    for (const replica of this.#replicas.values()) replica.close()
    this.#replicas.clear()
  }

  view(mode: Mode, name: ListName, lag: Lag): RecordView {
    const key = JSON.stringify([mode, name, lag.seconds, lag.changes])
    let replica = this.#replicas.get(key)
    if (replica === undefined) {
      replica = new Replica({ collection: this.#worlds[mode][name], lag, now: this.#now })
      this.#replicas.set(key, replica)
    }
    return replica.view()
  }
}
