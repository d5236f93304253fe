import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { SupersededError } from '../errors.ts'
import type { LeaseOwner } from '../leases.ts'
import type { StateTables } from '../schema.ts'
import { transact } from '../transact.ts'
import { type RowPatch, storable } from './row.ts'

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
  /** The right that the caller has; default: none yet. */
  held?: FencingToken | undefined
}

/**
 * Makes the caller the run's sender: from this commit on no claim of an earlier one succeeds. A caller that has the right
 * keeps it. A restored state may lack the lease, which is then taken.
 *
 * @throws {SupersededError} another run holds the lease, or a later attempt of this run has the right
 */
export async function becomeSender({
  db,
  run,
  lease,
  now,
  interrupted,
  held,
}: BecomeSender & { db: Kysely<StateTables> }): Promise<FencingToken> {
  const sender = held ?? { run, lease: lease.name, token: randomUUID() }
  await transact(db, async (transaction) => {
    if (held === undefined) await takeRight(transaction, { sender, lease, takenAt: now() })
    else await holdRight(transaction, held)
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
}

async function takeRight(
  db: Kysely<StateTables>,
  { sender, lease, takenAt }: { sender: FencingToken; lease: SendLease; takenAt: number },
): Promise<void> {
  const { name, owner, attempt } = lease
  const { token } = sender
  const taken = await db
    .insertInto('leases')
    .values({ name, ...owner, takenAt, token, attempt })
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet({ token, attempt })
        .where('leases.workflowId', '=', owner.workflowId)
        .where('leases.runId', '=', owner.runId)
        .where('leases.attempt', '<=', attempt),
    )
    .returning('name')
    .executeTakeFirst()
  if (taken === undefined) throw new SupersededError(sender)
}

/** Ensures that no one else becomes the sender until the transaction ends: the update locks the lease's row. */
async function holdRight(db: Kysely<StateTables>, sender: FencingToken): Promise<void> {
  const { lease, token } = sender
  const { numUpdatedRows } = await db
    .updateTable('leases')
    .set({ token })
    .where('name', '=', lease)
    .where('token', '=', token)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw new SupersededError(sender)
}
