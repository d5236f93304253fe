/** SQL that PostgreSQL and DuckDB interpret alike. */

/** Quotes a name as an identifier. */
export const quote = (name: string) => `"${name.replaceAll('"', '""')}"`

/** Quotes text as a literal; null as NULL. Neither database has backslash escapes in such literals. */
export const literal = (text: string | null) => (text === null ? 'null' : `'${text.replaceAll("'", "''")}'`)

export const instant = (text: string | null) => `${literal(text)}::timestamptz`

/** The session table that holds a table's rows until they are merged. */
export const stagedName = (table: string) => quote(`_staged_${table}`)
