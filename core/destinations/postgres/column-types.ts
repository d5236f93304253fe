import type { ColumnTypes, TypeSystem } from '../warehouse/column-types.ts'
import type { WarehouseColumn } from '../layout.ts'
import { quote } from '../sql.ts'

/** PostgreSQL's numeric and jsonb keep every digit of a number; `json` keeps the original text. */
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
  // An export of a whole list replaces every row. A page with room for the new version of each of its rows keeps them all,
  // no index changes, and the next export finds the room of the old versions free again, without a vacuum.
  tableOptions: 'with (fillfactor = 45)',
  stagedValue: ({ name }, type) => `s.${quote(name)}::${type}`,
  microseconds: (instant) => `(extract(epoch from ${instant}) * 1000000)::bigint`,
  // One statement, because each would rewrite the table.
  retype: (table, types) => [
    `alter table ${table} ${[...types].map(([name, type]) => `alter column ${quote(name)} type ${type}`).join(', ')}`,
  ],
}

/**
 * The most consecutive digits, and bytes, that jsonb is trusted with; a numeric has at most 16,383 decimal
 * places.
 */
const mostDigits = 6_000
const mostBytes = 100_000_000

/**
 * A JSON text of so many bytes never takes more than `mostBytes`: a number that is written out with up to 147,455 digits
 * has at least 7 characters (`1e99999`), and one of 6 at most 10,000 digits.
 */
export const mostTrusted = 4_000

/**
 * SQL that tests whether a jsonb value's text is too long to trust. Small ones are not written out, because
 * 500 bytes hold few numbers, each of at most 150,000 digits.
 */
export const isTooLong = (value: string): string =>
  `case when pg_column_size(${value}) > 500 or pg_column_compression(${value}) is not null
    then octet_length(${value}::text) > ${mostBytes} else false end`

/**
 * SQL that tests whether jsonb takes a valid JSON text of ours. It rejects `\\u0000`, lone surrogates,
 * numbers out of numeric's range, and very long texts. Numbers are searched outside strings, and only in the
 * few texts that could contain such a number.
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
 * The type of a staged key column; the table made from it compares ids byte by byte, too: faster, and unaffected by
 * upgrades of the system's locales.
 */
export const keyType = (type: string): string => (type === 'text' ? 'text collate "C"' : type)

/**
 * The type of a staged cell, from which its value is converted later: the column's own type in the
 * warehouse, or without one a type that holds every value of its kind. In a column that has become text a
 * timestamp keeps its own text, and any other cell must still be of its kind.
 */
export function stagedType({ name, kind }: WarehouseColumn, inWarehouse?: ColumnTypes): string {
  const { types } = postgresTypes
  const ladder = kind === 'timestamp' ? [...types.timestamp, ...types.text] : types[kind]
  return ladder.find((type) => type === inWarehouse?.get(name)) ?? ladder.at(-1)!
}
