import { randomUUID } from 'node:crypto'
import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { SupersededError } from '../errors.ts'
import type { LeaseOwner } from '../leases.ts'
import type { ChangeState, StateTables } from '../schema.ts'
import { type Store, transact } from '../store.ts'
import { type LedgerRow, type RowPatch, storable } from './row.ts'

/** The lease under which a run sends, and the attempt of the run that asks for it. */
export interface SendLease {
  name: string
  owner: LeaseOwner
  /** When Temporal scheduled the attempt, by its clock: an earlier one takes nothing from a later one. */
  attempt: number
}

/**
 * The right to claim changes of a run: one attempt at a time, the latest one of the run that holds the lease. Random, so
 * that a restored backup never makes an old one valid again.
 */
export interface FencingToken {
  readonly run: string
  readonly lease: string
  readonly token: string
}

export interface BecomeSender {
  run: string
  lease: SendLease
  /** Now, in milliseconds since 1970. */
  now: () => number
  /** Applied to what the sender before was sending when it was superseded at that time. */
  interrupted: (at: number) => RowPatch
}

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
 * process is frozen.
 */
export function createClaims({ writes, isShared }: Pick<Store, 'writes' | 'isShared'>) {
  const leaseOf = (db: Kysely<StateTables>, { lease, token }: FencingToken) =>
    db.selectFrom('leases').select('name').where('name', '=', lease).where('token', '=', token)

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
    if ((await leaseOf(writes, sender).executeTakeFirst()) === undefined) throw new SupersededError(sender)
  }

  return {
    hasRight,
    refuseSuperseded,
    /** See `createLedger`. */
    async claim({ sender, id, sends, at, before }: ClaimOptions): Promise<LedgerRow | undefined> {
      const claimed = await writes
        .updateTable('changes')
        .set((column) => ({
          state: 'sending',
          claims: column('claims', '+', 1),
          sends: column('sends', '+', 1),
          sentAt: at,
          answeredAt: null,
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
    },
    /**
     * Updates one change if it is still in one of the states `from` and, if `claims` is given, was not claimed again since.
     * Returns false if nothing was changed.
     *
     * @throws {KeyHeldError} another change has taken its key in the meantime
     * @throws {SupersededError} with `sender`: another attempt became the run's sender
     */
    async move({ id, from, claims, outcome, sender, patch }: MoveOptions): Promise<boolean> {
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
    },
    /**
     * Makes the caller the run's sender: from this commit on no claim of an earlier one succeeds. A restored state may lack the
     * lease, which is then taken.
     *
     * @throws {SupersededError} another run holds the lease, or a later attempt of this run has the right
     */
    async becomeSender({ run, lease, now, interrupted }: BecomeSender): Promise<FencingToken> {
      const sender = { run, lease: lease.name, token: randomUUID() }
      await transact(writes, async (transaction) => {
        const isTaken = await takeRight(transaction, { token: sender.token, lease, takenAt: now() })
        if (!isTaken) throw new SupersededError(sender)
        // Read once the row is locked: a claim that was first may have taken long, and its request leaves after it.
        const at = now()
        await transaction
          .updateTable('changes')
          .set(storable(interrupted(at)))
          .where('run', '=', run)
          .where('state', '=', 'sending')
          .execute()
      })
      return sender
    },
  }
}

async function takeRight(
  db: Kysely<StateTables>,
  { token, lease, takenAt }: { token: string; lease: SendLease; takenAt: number },
): Promise<boolean> {
  const { name, owner, attempt } = lease
  const taken = await db
    .insertInto('leases')
    .values({ name, ...owner, takenAt, token, attempt, released: 0 })
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet({ token, attempt, released: 0 })
        .where('leases.workflowId', '=', owner.workflowId)
        .where('leases.runId', '=', owner.runId)
        .where('leases.attempt', '<=', attempt),
    )
    .returning('name')
    .executeTakeFirst()
  return taken !== undefined
}
