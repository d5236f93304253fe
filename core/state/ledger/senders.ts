import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { SupersededError } from '../errors.ts'
import type { SenderTable, StateTables } from '../schema.ts'
import { transact } from '../transact.ts'
import { type RowPatch, storable } from './row.ts'

/**
 * The right to claim changes of a run: one holder at a time, the one that took it last. Random, so that a restored backup
 * never makes an old one valid again.
 */
export interface FencingToken {
  readonly run: string
  readonly token: string
}

export interface BecomeSender {
  run: string
  /** Now, in milliseconds since 1970. */
  now: () => number
  /** Applied to what the sender before was sending when it was superseded at that time. */
  interrupted: (at: number) => RowPatch
  /** The right that the caller has; default: none yet. */
  held?: FencingToken | undefined
}

/**
 * Makes the caller the run's sender: from this commit on no claim of an earlier one succeeds. A caller that has the right
 * keeps it.
 *
 * @throws {SupersededError} if another sender has taken over the right that the caller had
 */
export async function becomeSender({
  db,
  run,
  now,
  interrupted,
  held,
}: BecomeSender & { db: Kysely<StateTables> }): Promise<FencingToken> {
  const token = held?.token ?? randomUUID()
  await transact(db, async (transaction) => {
    if (held === undefined) await takeRight(transaction, { run, token, since: now() })
    else await holdSender(transaction, held)
    // Read once the row is locked: a claim that was first may have taken long, and its request leaves after it.
    const at = now()
    await transaction
      .updateTable('changes')
      .set(storable(interrupted(at)))
      .where('run', '=', run)
      .where('state', '=', 'sending')
      .execute()
  })
  return { run, token }
}

async function takeRight(db: Kysely<StateTables>, { run, token, since }: SenderTable): Promise<void> {
  await db
    .insertInto('senders')
    .values({ run, token, since })
    .onConflict((conflict) => conflict.column('run').doUpdateSet({ token, since }))
    .execute()
}

/**
 * Ensures that no one else becomes the run's sender until the transaction ends: the update locks its row.
 *
 * @throws {SupersededError} if another sender has taken over
 */
export async function holdSender(db: Kysely<StateTables>, { run, token }: FencingToken): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('senders')
    .set({ token })
    .where('run', '=', run)
    .where('token', '=', token)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw new SupersededError({ run })
}
