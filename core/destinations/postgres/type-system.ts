import type { TypeSystem } from '../warehouse/session.ts'
import { quote } from '../warehouse/sql.ts'

/**
 * PostgreSQL's numeric keeps every digit, and `json` the text as it came: jsonb would drop the order of keys and
 * what is there twice, and refuses `\u0000`.
 */
export const postgresTypes: TypeSystem = {
  types: {
    text: ['text'],
    integer: ['numeric'],
    position: ['integer'],
    decimal: ['numeric'],
    boolean: ['boolean'],
    date: ['date'],
    timestamp: ['timestamp with time zone'],
    json: ['json'],
  },
  hasKeys: true,
  // Ids are compared byte by byte: quicker, and the same after an upgrade of the system's locales.
  keyType: (type) => (type === 'text' ? 'text collate "C"' : type),
  stagedValue: ({ cell }, type) => `s.${quote(cell)}::${type}`,
  microseconds: (instant) => `(extract(epoch from ${instant}) * 1000000)::bigint`,
}

/** The type of a staged cell. A timestamp's own text is kept, so it waits as text. */
export const stagedType = (kind: keyof TypeSystem['types']): string =>
  kind === 'timestamp' ? 'text' : postgresTypes.types[kind][0]
