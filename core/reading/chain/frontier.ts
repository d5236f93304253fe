import type { Instant } from '../instant.ts'

export interface FrontierState {
  at: Instant
  closed: boolean
  ids: string[]
}

/**
 * How far the chain has come: the oldest key taken, and the ids of the records taken with that key.
 *
 * Everything that was in the list throughout and is newer than `at` has been taken; if the frontier is `closed`, so has
 * everything at `at`. The list is read newest first, so this is enough to take each record once.
 */
export class Frontier {
  /** Infinity before the first window. */
  at: Instant = Infinity
  closed = true
  ids = new Set<string>()

  static from(state: FrontierState | undefined): Frontier {
    const frontier = new Frontier()
    if (state !== undefined) Object.assign(frontier, { ...state, ids: new Set(state.ids) })
    return frontier
  }

  toState(): FrontierState | undefined {
    return this.at === Infinity ? undefined : { at: this.at, closed: this.closed, ids: [...this.ids] }
  }

  /** Takes a record. Returns true if it is new: older than all taken before, or as old as the oldest with a new id. */
  take(at: Instant, identity: string): boolean {
    if (at > this.at) return false
    if (at < this.at) {
      this.at = at
      this.closed = false
      this.ids.clear()
    } else if (this.ids.has(identity)) return false
    this.ids.add(identity)
    return true
  }
}
