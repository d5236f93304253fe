import { type ExpressionBuilder, sql } from 'kysely'
import { SupersededError } from '../errors.ts'
import type { Store } from '../store.ts'
import type { ChangeState, StateTables } from '../schema.ts'
import { retryConflicts } from '../transact.ts'
import { type LedgerRow, type RowPatch, storable } from './row.ts'
import type { FencingToken } from './senders.ts'

export interface ClaimOptions {
  sender: FencingToken
  id: number
  /** How often it had been sent when the caller read it. */
  sends: number
  /** Now, in milliseconds since 1970. */
  at: number
  /** The facts of the check just before, as JSON text. */
  before?: string
}

export interface MoveOptions {
  id: number
  from: readonly ChangeState[]
  claims?: number
  outcome?: string
  /** Only while this is the right to claim changes of its run. */
  sender?: FencingToken | undefined
  patch: RowPatch
}

/**
 * Claims and moves of single changes: one statement each, which is a transaction of its own. No lock is held while this
 * process is frozen. See `Ledger` for what each promises.
 */
export function createRowWrites({ writes, isShared }: Pick<Store, 'writes' | 'isShared'>) {
  /**
   * The lock of the lease's row orders claims and take-overs: a take-over waits for a claim, and a claim that waited for
   * a take-over finds another token. SQLite has one writer and needs no lock. Behind pgbouncer a session has no settings
   * of its own, so the statement brings them.
   */
  const hasRight =
    ({ lease, token }: FencingToken) =>
    (change: ExpressionBuilder<StateTables, 'changes'>) =>
      change.exists(
        change
          .selectFrom('leases')
          .select('name')
          .where('name', '=', lease)
          .where('token', '=', token)
          .$if(isShared, (query) => query.select(settings).forShare()),
      )
  const settings =
    sql`set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '5s', true)`.as('settings')

  const refuseSuperseded = async (sender: FencingToken) => {
    const { lease, token } = sender
    const right = writes
      .selectFrom('leases')
      .select('name')
      .where('name', '=', lease)
      .where('token', '=', token)
    if ((await right.executeTakeFirst()) === undefined) throw new SupersededError(sender)
  }

  return {
    claim: ({ sender, id, sends, at, before }: ClaimOptions): Promise<LedgerRow | undefined> =>
      retryConflicts(async () => {
        const claimed = await writes
          .updateTable('changes')
          .set((column) => ({
            state: 'sending',
            claims: column('claims', '+', 1),
            sends: column('sends', '+', 1),
            sentAt: at,
            answeredAt: null,
            faultAt: null,
            lookups: 0,
            ...(before !== undefined && { before }),
          }))
          .where('id', '=', id)
          // No index serves these two: PostgreSQL's statistics may be from before the run was staged, and would make it
          // read all rows of the run.
          .where('run', 'is not distinct from', sender.run)
          .where('state', 'is not distinct from', 'staged')
          .where('sends', '=', sends)
          .where(hasRight(sender))
          .returningAll()
          .executeTakeFirst()
        if (claimed === undefined) await refuseSuperseded(sender)
        return claimed
      }),
    move: ({ id, from, claims, outcome, sender, patch }: MoveOptions): Promise<boolean> =>
      retryConflicts(async () => {
        let moving = writes
          .updateTable('changes')
          .set(storable(patch))
          .where('id', '=', id)
          .where('state', 'in', from)
        if (claims !== undefined) moving = moving.where('claims', '=', claims)
        if (outcome !== undefined) moving = moving.where('outcome', '=', outcome)
        if (sender !== undefined) moving = moving.where(hasRight(sender))
        const { numUpdatedRows } = await moving.executeTakeFirstOrThrow()
        if (numUpdatedRows === 0n && sender !== undefined) await refuseSuperseded(sender)
        return numUpdatedRows === 1n
      }),
  }
}
