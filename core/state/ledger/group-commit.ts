import { StateConflictError, SupersededError, isStateAway } from '../errors.ts'
import type { LedgerRow } from './row.ts'

/** What a write has done: nothing if its conditions did not hold; a claim returns its row. */
export interface Written {
  isWritten: boolean
  row?: LedgerRow
}

/** Writes several changes in one commit. The results are in the order of the writes. */
export type Commit<Write> = (
  group: readonly [Write, ...Write[]],
) => Promise<readonly (Written | SupersededError)[]>

interface Pending<Write> {
  write: Write
  resolve: (written: Written) => void
  reject: (error: unknown) => void
}

const mostTries = 3

/**
 * Commits writes together that come in the same turn of the event loop or while a commit is in progress: a commit waits
 * for the disk (0.2 to 5 ms), and with several changes in flight most of them can share one. A write's promise resolves
 * when the write is on disk, as if it had been alone.
 */
export class GroupCommit<Write extends { id: number }> {
  readonly #commit: Commit<Write>
  readonly #keyOf: (write: Write) => string
  /** The writes that wait, by key; a key is there as long as its writes are being committed. */
  readonly #waiting = new Map<string, Pending<Write>[]>()

  /** Only writes with the same key share a commit, and wait for one. */
  constructor({ commit, keyOf }: { commit: Commit<Write>; keyOf: (write: Write) => string }) {
    this.#commit = commit
    this.#keyOf = keyOf
  }

  write(write: Write): Promise<Written> {
    return new Promise<Written>((resolve, reject) => {
      const key = this.#keyOf(write)
      const waiting = this.#waiting.get(key)
      if (waiting !== undefined) return waiting.push({ write, resolve, reject })
      this.#waiting.set(key, [{ write, resolve, reject }])
      return setImmediate(() => void this.#commitAll(key))
    })
  }

  async #commitAll(key: string): Promise<void> {
    for (let now = this.#take(key); now.length > 0; now = this.#take(key)) await this.#settle(now)
    this.#waiting.delete(key)
  }

  /** One write for each change: the next one of the same change must find what this one has written. */
  #take(key: string): Pending<Write>[] {
    const ids = new Set<number>()
    const isFirst = ({ write: { id } }: Pending<Write>) => !ids.has(id) && ids.add(id)
    const waiting = this.#waiting.get(key) ?? []
    const { now = [], later = [] } = Object.groupBy(waiting, (one) => (isFirst(one) ? 'now' : 'later'))
    this.#waiting.set(key, later)
    return now
  }

  async #settle(group: readonly Pending<Write>[], tries = 1): Promise<void> {
    const [first, ...others] = group
    if (first === undefined) return
    try {
      const results = await this.#commit([first.write, ...others.map(({ write }) => write)])
      for (const [index, result] of results.entries())
        if (result instanceof SupersededError) group[index]?.reject(result)
        else group[index]?.resolve(result)
    } catch (error) {
      const isConflict = error instanceof StateConflictError
      // A failed statement rolls back the whole commit, although it may be about one change.
      if (others.length > 0 && (isConflict || !isStateAway(error)))
        for (const pending of group) await this.#settle([pending])
      else if (isConflict && tries < mostTries) await this.#settle(group, tries + 1)
      else for (const { reject } of group) reject(error)
    }
  }
}
