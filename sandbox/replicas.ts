import type { Fault } from './faults.ts'
import { type ListName, listNames, type Mode } from './options.ts'
import type { RecordView } from './store/record-view.ts'
import { type Lag, Replica } from './store/replica.ts'
import type { World } from './world.ts'

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
