import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { SupersededError } from '../errors.ts'
import type { StateTables } from '../tables.ts'
import { transact } from '../transact.ts'
import { type RowPatch, toColumns } from './row.ts'

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
  at: number
  /** Applied to what the sender before was sending when it was superseded. */
  interrupted: RowPatch
}

/** Makes the caller the run's sender: from this commit on no claim of an earlier one succeeds. */
export async function becomeSender({
  db,
  run,
  at,
  interrupted,
}: BecomeSender & { db: Kysely<StateTables> }): Promise<FencingToken> {
  const token = randomUUID()
  await transact(db, async (transaction) => {
    await transaction
      .insertInto('senders')
      .values({ run, token, since: at })
      .onConflict((conflict) => conflict.column('run').doUpdateSet({ token, since: at }))
      .execute()
    await transaction
      .updateTable('changes')
      .set(toColumns(interrupted))
      .where('run', '=', run)
      .where('state', '=', 'sending')
      .execute()
  })
  return { run, token }
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
