import type { Kysely } from 'kysely'
import { KeyHeldError, StateConflictError, SupersededError } from '../errors.ts'
import type { StateTables } from '../tables.ts'
import { transact } from '../transact.ts'

type Write<T> = (group: Group) => Promise<T>

/** The writes of one commit. */
export interface Group {
  db: Kysely<StateTables>
  /** What several writes of the group need is done once. */
  once: (key: string, work: () => Promise<void>) => Promise<void>
}

interface Pending {
  write: Write<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

/**
 * Commits writes together that come in the same turn of the event loop or while a commit is in progress: a commit waits
 * for the disk (0.2 to 5 ms), and with several changes in flight most of them can share one. A write's promise resolves
 * when the write is on disk, as if it had been alone.
 */
export class GroupCommit {
  readonly #db: Kysely<StateTables>
  #pending: Pending[] = []
  #isBusy = false

  constructor(db: Kysely<StateTables>) {
    this.#db = db
  }

  write<T>(write: Write<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#pending.push({ write, resolve: resolve as (value: unknown) => void, reject })
      if (this.#isBusy) return
      this.#isBusy = true
      setImmediate(() => void this.#commitAll())
    })
  }

  async #commitAll(): Promise<void> {
    while (this.#pending.length > 0) {
      const group = this.#pending
      this.#pending = []
      await this.#commit(group)
    }
    this.#isBusy = false
  }

  async #commit(group: readonly Pending[]): Promise<void> {
    try {
      const ends = await this.#db.transaction().execute(async (transaction) => {
        const shared = toGroup(transaction)
        // On PostgreSQL they leave together; SQLite carries them out one after the other. All have ended before the
        // transaction does, so that none of their statements comes after it.
        const ends = await Promise.allSettled(group.map((pending) => execute(pending, shared)))
        return ends.map((end) => {
          if (end.status === 'rejected') throw end.reason
          return end.value
        })
      })
      for (const end of ends) end()
    } catch (error) {
      if (isAboutOne(error)) for (const pending of group) await this.#commitAlone(pending)
      else for (const { reject } of group) reject(error)
    }
  }

  async #commitAlone({ write, resolve, reject }: Pending): Promise<void> {
    await transact(this.#db, (db) => write(toGroup(db))).then(resolve, reject)
  }
}

function toGroup(db: Kysely<StateTables>): Group {
  const begun = new Map<string, Promise<void>>()
  const once = (key: string, work: () => Promise<void>) => {
    const known = begun.get(key) ?? work()
    begun.set(key, known)
    return known
  }
  return { db, once }
}

/** In PostgreSQL, a failed statement rolls back the whole transaction: the writes of the group are committed one by one. */
const isAboutOne = (error: unknown) => error instanceof KeyHeldError || error instanceof StateConflictError

/** A SupersededError comes without a failed statement, and says that the write changed nothing. */
async function execute({ write, resolve, reject }: Pending, group: Group): Promise<() => void> {
  try {
    const value = await write(group)
    return () => resolve(value)
  } catch (error) {
    if (!(error instanceof SupersededError)) throw error
    return () => reject(error)
  }
}
