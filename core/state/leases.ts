import type { Store } from './store.ts'
import type { LeaseTable } from './schema.ts'

/** A run as Temporal knows it: the workflow id and the *first* run id of its execution chain. */
export interface LeaseOwner {
  workflowId: string
  /** The run id of the first execution; it stays the same across retries and continue-as-new. */
  runId: string
}

export type LeaseResult = { taken: true } | { taken: false; heldBy: LeaseOwner }

/** Leases: the exclusive right of one run to some work. */
export interface Leases {
  /**
   * Takes the lease for the owner. The same owner may take it again. If another run holds it, the lease is taken over only
   * if `isClosed` says that the other run has ended.
   */
  take(options: {
    name: string
    owner: LeaseOwner
    isClosed: (owner: LeaseOwner) => Promise<boolean>
  }): Promise<LeaseResult>
  /** Releases the lease; does nothing if another owner holds it. */
  release(options: { name: string; owner: LeaseOwner }): Promise<void>
  holder(options: { name: string }): Promise<LeaseOwner | undefined>
  /** Forgets all: those of a backup may have ended long ago, and each step takes its own again. */
  forgetAll(): Promise<void>
}

export function createLeases({ db, now }: Pick<Store, 'db' | 'now'>): Leases {
  const holder = async ({ name }: { name: string }) => {
    const row = await db.selectFrom('leases').selectAll().where('name', '=', name).executeTakeFirst()
    return row === undefined ? undefined : toOwner(row)
  }

  const free = ({ name, owner }: { name: string; owner: LeaseOwner }) =>
    db
      .deleteFrom('leases')
      .where('name', '=', name)
      .where('workflowId', '=', owner.workflowId)
      .where('runId', '=', owner.runId)
      .execute()

  const insert = async ({ name, owner }: { name: string; owner: LeaseOwner }) => {
    const values = { name, workflowId: owner.workflowId, runId: owner.runId, takenAt: now(), attempt: 0 }
    await db
      .insertInto('leases')
      .values(values)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    return await holder({ name })
  }

  return {
    holder,
    take: async ({ name, owner, isClosed }) => {
      // Each iteration returns or releases the lease of one closed owner.
      for (;;) {
        const held = await insert({ name, owner })
        if (held === undefined) continue
        if (isSame(held, owner)) return { taken: true }
        if (!(await isClosed(held))) return { taken: false, heldBy: held }
        await free({ name, owner: held })
      }
    },
    release: async (options) => {
      await free(options)
    },
    forgetAll: async () => {
      await db.deleteFrom('leases').execute()
    },
  }
}

const toOwner = (row: LeaseTable): LeaseOwner => ({ workflowId: row.workflowId, runId: row.runId })
const isSame = (a: LeaseOwner, b: LeaseOwner) => a.workflowId === b.workflowId && a.runId === b.runId
