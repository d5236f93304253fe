import { quote, stagedName } from '../sql.ts'
import type { Table } from '../../tables/table.ts'
import type { Session } from './session.ts'

/** The longest text, in bytes, that is sure to fit into an index. */
const longestIndexed = 2_000

/** The columns with the id of another record ("customer id", "plan id"), each with the name of its index. */
const indexesOf = (table: Table): { column: string; index: string }[] =>
  table.columns
    .filter(
      ({ name, kind, note = '' }) =>
        !table.key.includes(name) && kind !== 'json' && /(?<!\btype )\bid\b/.test(note),
    )
    .map(({ name }) => ({ column: quote(name), index: quote(`${table.name}_${name}`) }))

/** Drops the indexes that would refuse a staged row: a long value costs its index, never the rows. */
export async function dropRefusingIndexes(session: Session, table: Table): Promise<void> {
  const drops = indexesOf(table).map(
    ({ column, index }) =>
      `if exists (select from ${stagedName(table.name)} where octet_length(${column}) > ${longestIndexed})
      then drop index if exists ${quote(session.schema)}.${index}; end if;`,
  )
  if (drops.length > 0) await session.run(`do $$ begin ${drops.join(' ')} end $$`)
}

/** Creates an index for each column with the id of another record, unless one of its values is too long. */
export async function createIndexes(session: Session, table: Table): Promise<void> {
  for (const { column, index } of indexesOf(table))
    await session.run(`do $$ begin
      create index if not exists ${index} on ${session.nameOf(table.name)} (${column});
      exception when program_limit_exceeded then null; end $$`)
}
