import type { Kysely } from 'kysely'
import type { ClaimTable, StateTables } from './tables.ts'

/** A run as Temporal knows it: the workflow id and the *first* run id of its execution chain. */
export interface ClaimOwner {
  workflowId: string
  /** The first execution's run id: it stays the same over retries and continue-as-new. */
  runId: string
}

export type ClaimResult = { taken: true } | { taken: false; heldBy: ClaimOwner }

/** One run at a time for what must not be done twice at once. */
export interface Claims {
  /**
   * Takes `what` for the owner. Taking it again as the same owner is fine. Where another owner has it, `isClosed`
   * is asked about that one, and only a closed owner's claim is taken over.
   */
  take(options: {
    what: string
    owner: ClaimOwner
    isClosed: (owner: ClaimOwner) => Promise<boolean>
  }): Promise<ClaimResult>
  /** Gives it free; nothing happens where another owner has it. */
  release(options: { what: string; owner: ClaimOwner }): Promise<void>
  holder(options: { what: string }): Promise<ClaimOwner | undefined>
}

export function createClaims({ db }: { db: Kysely<StateTables> }): Claims {
  const holder = async ({ what }: { what: string }) => {
    const row = await db.selectFrom('claims').selectAll().where('what', '=', what).executeTakeFirst()
    return row === undefined ? undefined : toOwner(row)
  }

  const free = ({ what, owner }: { what: string; owner: ClaimOwner }) =>
    db
      .deleteFrom('claims')
      .where('what', '=', what)
      .where('workflow_id', '=', owner.workflowId)
      .where('run_id', '=', owner.runId)
      .execute()

  const insert = async ({ what, owner }: { what: string; owner: ClaimOwner }) => {
    const values = { what, workflow_id: owner.workflowId, run_id: owner.runId, taken_at: Date.now() }
    await db
      .insertInto('claims')
      .values(values)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    return await holder({ what })
  }

  return {
    holder,
    take: async ({ what, owner, isClosed }) => {
      // Every turn either ends or frees the claim of one closed owner.
      for (;;) {
        const held = await insert({ what, owner })
        if (held === undefined) continue
        if (isSame(held, owner)) return { taken: true }
        if (!(await isClosed(held))) return { taken: false, heldBy: held }
        await free({ what, owner: held })
      }
    },
    release: async (options) => {
      await free(options)
    },
  }
}

const toOwner = (row: ClaimTable): ClaimOwner => ({ workflowId: row.workflow_id, runId: row.run_id })
const isSame = (a: ClaimOwner, b: ClaimOwner) => a.workflowId === b.workflowId && a.runId === b.runId
