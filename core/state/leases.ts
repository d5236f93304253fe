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
export type Leases = ReturnType<typeof createLeases>

export function createLeases({ db, now }: Pick<Store, 'db' | 'now'>) {
  const find = ({ name }: { name: string }) =>
    db.selectFrom('leases').selectAll().where('name', '=', name).executeTakeFirst()

  const isOf = (owner: LeaseOwner) => ({ workflowId: owner.workflowId, runId: owner.runId })

  const insert = async ({ name, owner }: { name: string; owner: LeaseOwner }) => {
    await db
      .insertInto('leases')
      .values({ name, ...isOf(owner), takenAt: now(), attempt: 0, released: 0 })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet({ released: 0 })
          .where('leases.workflowId', '=', owner.workflowId)
          .where('leases.runId', '=', owner.runId),
      )
      .execute()
    return await find({ name })
  }

  return {
    /** Who took the lease last. */
    lastHolder: async ({
      name,
    }: {
      name: string
    }): Promise<(LeaseOwner & { isReleased: boolean }) | undefined> => {
      const row = await find({ name })
      return row && { ...toOwner(row), isReleased: row.released === 1 }
    },
    /**
     * Takes the lease for the owner. The same owner may take it again. If another run holds it, the lease is taken over only
     * if `isClosed` says that the other run has ended, and not if the owner takes it `again`.
     */
    take: async ({
      name,
      owner,
      isClosed,
      again = false,
    }: {
      name: string
      owner: LeaseOwner
      isClosed: (owner: LeaseOwner) => Promise<boolean>
      again?: boolean | undefined
    }): Promise<LeaseResult> => {
      // Each iteration returns or takes the lease of one closed owner.
      for (;;) {
        const row = await insert({ name, owner })
        if (row === undefined) continue
        const held = toOwner(row)
        if (isSame(held, owner)) return { taken: true }
        if (again || (row.released === 0 && !(await isClosed(held)))) return { taken: false, heldBy: held }
        // The attempts of a workflow are in one order, also those of an execution that was reset: one of these that wakes takes
        // no right from a later one.
        const isReset = held.workflowId === owner.workflowId
        await db
          .updateTable('leases')
          .set({ ...isOf(owner), takenAt: now(), token: null, released: 0, ...(!isReset && { attempt: 0 }) })
          .where((lease) => lease.and({ name, ...isOf(held), released: row.released }))
          .execute()
      }
    },
    /**
     * Releases the lease; does nothing if another owner holds it. An attempt of this owner that slept meanwhile does not get
     * the right to send from it.
     */
    release: async ({ name, owner }: { name: string; owner: LeaseOwner }): Promise<void> => {
      await db
        .updateTable('leases')
        .set({ released: 1, token: null })
        .where((lease) => lease.and({ name, ...isOf(owner) }))
        .execute()
    },
    /** Forgets all: those of a backup may have ended long ago, and each step takes its own again. */
    forgetAll: async (): Promise<void> => {
      await db.deleteFrom('leases').execute()
    },
  }
}

const toOwner = (row: LeaseTable): LeaseOwner => ({ workflowId: row.workflowId, runId: row.runId })
const isSame = (a: LeaseOwner, b: LeaseOwner) => a.workflowId === b.workflowId && a.runId === b.runId
