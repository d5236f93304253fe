import type { Instant } from './instant.ts'

export interface FrontierState {
  at: Instant
  closed: boolean
  ids: string[]
}

/**
 * How far down the chain has gone: the oldest key taken, and who was taken at it.
 *
 * Everything that was in the list throughout and is newer than `at` has been taken; where it is `closed`, also
 * everything at it. A list is taken newest first, so this is all one must remember to take each record once.
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

  /** Takes a record: true if it is older than all taken before, or as old as the oldest and new. */
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
