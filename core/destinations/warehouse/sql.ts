/** SQL that PostgreSQL and DuckDB read alike. */

/** A name as an identifier. */
export const quote = (name: string) => `"${name.replaceAll('"', '""')}"`

/** A text as a literal; null as NULL. Neither of the two has backslash escapes in such a literal. */
export const literal = (text: string | null) => (text === null ? 'null' : `'${text.replaceAll("'", "''")}'`)

export const instant = (text: string | null) => `${literal(text)}::timestamptz`

/** The name of a session's table in which the rows of a table wait to be merged. */
export const stagedName = (table: string) => quote(`_staged_${table}`)
