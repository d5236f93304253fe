import { type Kysely, type Selectable, sql } from 'kysely'
import { SupersededError } from '../errors.ts'
import { GroupCommit, type Written } from '../ledger/group-commit.ts'
import { toColumns, toRow } from '../ledger/row.ts'
import type { ClaimOptions, MoveOptions, RowWrites } from '../ledger/row-writes.ts'
import type { ChangeTable, StateTables } from '../tables.ts'

/**
 * One statement for the claims and answers of a run that wait together (migrations/postgres/0008-row-writes.ts). They share
 * commits because the disk makes one after the other: apart, each would wait for the other's, too. Those of several runs
 * do not wait for each other.
 */
export function createPostgresRowWrites({
  db,
  schema,
}: {
  db: Kysely<StateTables>
  schema: string
}): RowWrites {
  const commits = new GroupCommit<ClaimOptions | MoveOptions>({
    keyOf: runOf,
    commit: async (group) => {
      const [claims, moves] = [group.filter(isClaim), group.filter(isMove)]
      const senderRun = group.find(({ sender }) => sender !== undefined)?.sender?.run ?? null
      const { rows } = await sql<ReturnedRow>`select * from ${sql.id(schema, 'write_changes')}(
        ${senderRun}, ${claims.map(({ sender }) => sender.token)}, ${claims.map(({ id }) => id)},
        ${claims.map(({ sends }) => sends)}, ${claims.map(({ at }) => at)},
        ${claims.map(({ before }) => before ?? null)}, ${JSON.stringify(moves.map(toMove))})`.execute(db)
      const claimed = rows.slice(0, claims.length).values()
      const moved = rows.slice(claims.length).values()
      return group.map((write) => toWritten(write, (isClaim(write) ? claimed : moved).next().value))
    },
  })
  return {
    claim: async (options) => (await commits.write(options)).row,
    move: async (options) => (await commits.write(options)).isWritten,
  }
}

const runOf = (write: ClaimOptions | MoveOptions): string =>
  write.sender?.run ?? ('run' in write ? write.run : undefined) ?? ''
const isMove = (write: ClaimOptions | MoveOptions): write is MoveOptions => 'patch' in write
const isClaim = (write: ClaimOptions | MoveOptions): write is ClaimOptions => !isMove(write)

const toMove = ({ id, sender, from, claims, outcome, patch }: MoveOptions) => ({
  id,
  token: sender?.token,
  from,
  claims,
  outcome,
  patch: toColumns(patch),
})

/** Of a change that was moved, all other columns are null. */
type ReturnedRow = Selectable<ChangeTable> | { id: null; run: string | null }

function toWritten(
  write: ClaimOptions | MoveOptions,
  row: ReturnedRow | undefined,
): Written | SupersededError {
  if (row === undefined) throw new TypeError('write_changes returned too few rows')
  if (row.id !== null) return isClaim(write) ? { isWritten: true, row: toRow(row) } : { isWritten: true }
  return row.run !== null && write.sender ? new SupersededError(write.sender) : { isWritten: false }
}
