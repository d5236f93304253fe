import type { Change, Collection } from './collection.ts'
import { RecordView } from './record-view.ts'

/** How far a replica lags: seconds, or a number of changes (independent of the clock). */
export interface Lag {
  seconds?: number
  changes?: number
}

/** A copy of a collection that receives every change later. */
export class Replica {
  readonly #view: RecordView
  readonly #waiting: { change: Change; at: number }[] = []
  readonly #lag: Lag
  readonly #now: () => number
  /** Stops receiving changes. */
  readonly close: () => void

  constructor(options: { collection: Collection; lag: Lag; now: () => number }) {
    this.#lag = options.lag
    this.#now = options.now
    this.#view = new RecordView(options.collection.view.ordered('created').copy())
    this.close = options.collection.onChange((change) => this.#waiting.push({ change, at: this.#now() }))
  }

  /** The state that the replica has reached by now. */
  view(): RecordView {
    const { seconds, changes } = this.#lag
    const newest = seconds === undefined ? Infinity : this.#now() - seconds * 1_000_000
    let learnt = 0
    while (learnt < this.#waiting.length - (changes ?? 0)) {
      const next = this.#waiting[learnt]
      if (next === undefined || next.at > newest) break
      this.#view.put(next.change)
      learnt++
    }
    this.#waiting.splice(0, learnt)
    return this.#view
  }
}
