import { sql } from 'kysely'

/** One parameter however many values: SQLite takes at most 32,766 of them. */
export const among = <T extends string | number>(values: readonly T[]) =>
  sql<T>`(select value from json_each(${JSON.stringify(values)}))`
