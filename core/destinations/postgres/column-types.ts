import type { TypeSystem } from '../warehouse/column-types.ts'
import { quote } from '../warehouse/sql.ts'

/** PostgreSQL's numeric and jsonb keep every digit of a number; `json` keeps the text as it came. */
export const postgresTypes: TypeSystem = {
  types: {
    text: ['text'],
    integer: ['bigint', 'numeric'],
    position: ['integer'],
    decimal: ['numeric'],
    boolean: ['boolean'],
    date: ['date'],
    timestamp: ['timestamp with time zone'],
    json: ['jsonb', 'json'],
  },
  isExactly: (type, cell) =>
    type === 'bigint'
      ? `${cell} between -9223372036854775808 and 9223372036854775807`
      : isJsonb(`${cell}::text`),
  hasKeys: true,
  // Ids are compared byte by byte: quicker, and the same after an upgrade of the system's locales.
  keyType: (type) => (type === 'text' ? 'text collate "C"' : type),
  stagedValue: ({ cell }, type) => `s.${quote(cell)}::${type}`,
  microseconds: (instant) => `(extract(epoch from ${instant}) * 1000000)::bigint`,
  // In one statement, because each one rewrites the table.
  retype: (table, types) => [
    `alter table ${table} ${[...types].map(([name, type]) => `alter column ${quote(name)} type ${type}`).join(', ')}`,
  ],
}

/** Of digits in a row, and of bytes, jsonb keeps this many; a numeric has at most 16,383 decimal places. */
const mostDigits = 6_000
const mostBytes = 100_000_000

/**
 * Whether jsonb takes a text of ours that is valid JSON. It rejects `\\u0000` and half pairs of surrogates, numbers out
 * of the range of numeric, and very long texts. Numbers are looked for outside of strings, and only in the few texts
 * in which there may be such a thing at all.
 */
function isJsonb(text: string): string {
  const bare = `regexp_replace(${text}, '"([^"\\\\]|\\\\.)*"', '', 'g')`
  return `case when strpos(${text}, '\\u0000') > 0 or strpos(${text}, '\\ud') > 0 then false
    when octet_length(${text}) > ${mostBytes} then false
    when octet_length(${text}) <= ${mostDigits} and ${text} !~ '[0-9][eE][+-]?[0-9]{5}' then true
    else ${bare} !~ '[eE][+-]?[0-9]{5}' and coalesce((select max(length(run[1])) <= ${mostDigits}
      from regexp_matches(${bare}, '([0-9.]+)', 'g') run), true) end`
}

/**
 * The type of a staged cell, from which its value is converted: a timestamp's own text is kept, and which type holds
 * every number and document exactly is known once all are staged.
 */
export const stagedType = (kind: keyof TypeSystem['types']): string =>
  kind === 'timestamp' ? 'text' : postgresTypes.types[kind].at(-1)!
