import type { Kysely } from 'kysely'
import { SupersededError } from '../errors.ts'
import { GroupCommit, type Written } from '../ledger/group-commit.ts'
import { toColumns, toRow } from '../ledger/row.ts'
import type { ClaimOptions, MoveOptions, RowWrites } from '../ledger/row-writes.ts'
import { holdSender } from '../ledger/senders.ts'
import type { StateTables } from '../tables.ts'

/** One statement a change. Claims and answers share commits: SQLite has one writer. */
export function createSqliteRowWrites(db: Kysely<StateTables>): RowWrites {
  const commits = new GroupCommit<ClaimOptions | MoveOptions>({
    keyOf: () => '',
    commit: (group) =>
      db.transaction().execute(async (transaction) => {
        const written: (Written | SupersededError)[] = []
        const held = new Set<string>()
        for (const write of group) written.push(await execute({ db: transaction, held, write }))
        return written
      }),
  })
  return {
    claim: async (options) => (await commits.write(options)).row,
    move: async (options) => (await commits.write(options)).isWritten,
  }
}

async function execute({
  db,
  held,
  write,
}: {
  db: Kysely<StateTables>
  /** The rights that were looked at in this commit: nobody else can take one before it ends. */
  held: Set<string>
  write: ClaimOptions | MoveOptions
}): Promise<Written | SupersededError> {
  const { sender } = write
  try {
    if (sender !== undefined && !held.has(sender.token)) {
      await holdSender(db, sender)
      held.add(sender.token)
    }
    return await ('patch' in write ? move(db, write) : claim(db, write))
  } catch (error) {
    // No statement has failed, and the others of the commit may go on.
    if (error instanceof SupersededError) return error
    throw error
  }
}

async function claim(
  db: Kysely<StateTables>,
  { sender, id, sends, at, before }: ClaimOptions,
): Promise<Written> {
  const claimed = await db
    .updateTable('changes')
    .set((column) => ({
      state: 'sending',
      claims: column('claims', '+', 1),
      sends: column('sends', '+', 1),
      sent_at: at,
      answered_at: null,
      lookups: 0,
      ...(before !== undefined && { before }),
    }))
    .where('id', '=', id)
    .where('run', '=', sender.run)
    .where('state', '=', 'staged')
    .where('sends', '=', sends)
    .returningAll()
    .executeTakeFirst()
  return claimed === undefined ? { isWritten: false } : { isWritten: true, row: toRow(claimed) }
}

async function move(
  db: Kysely<StateTables>,
  { id, from, claims, outcome, patch }: MoveOptions,
): Promise<Written> {
  let update = db.updateTable('changes').set(toColumns(patch)).where('id', '=', id).where('state', 'in', from)
  if (claims !== undefined) update = update.where('claims', '=', claims)
  if (outcome !== undefined) update = update.where('outcome', '=', outcome)
  const { numUpdatedRows } = await update.executeTakeFirstOrThrow()
  return { isWritten: numUpdatedRows === 1n }
}
