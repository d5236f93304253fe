import { sql } from 'kysely'

/** Binds a list as one JSON parameter; SQLite allows at most 32,766 parameters. */
export const inValues = <T extends string | number>(values: readonly T[]) =>
  sql<T>`(select value from json_each(${JSON.stringify(values)}))`
