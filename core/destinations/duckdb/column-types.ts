import type { ColumnTypes, TypeSystem } from '../warehouse/column-types.ts'
import type { WarehouseTable } from '../layout.ts'
import { quote } from '../sql.ts'

const decimal = 'DECIMAL(26,6)'
const fineDecimal = 'DECIMAL(38,18)'

/**
 * The types each kind of column may have, preferred type first; each can hold every value of the one before
 * it.
 *
 * DuckDB silently rounds values with more decimal places than their DECIMAL declares. Both DECIMALs here
 * have 20 digits before the point. The product of two DECIMALs of up to 18 digits again has 18 and overflows
 * with ordinary amounts, so decimals start at 26 digits: their products have 38.
 */
const types: TypeSystem['types'] = {
  text: ['VARCHAR'],
  integer: ['BIGINT', 'DECIMAL(38,0)', 'VARCHAR'],
  position: ['INTEGER'],
  decimal: [decimal, fineDecimal, 'VARCHAR'],
  boolean: ['BOOLEAN'],
  date: ['DATE'],
  timestamp: ['TIMESTAMP WITH TIME ZONE'],
  json: ['JSON', 'VARCHAR'],
}

/** Builds the columns of a table from cells; fails at one that is not exactly of its column's type. */
export const toValues = ({ columns }: WarehouseTable, types: ColumnTypes): string =>
  columns.map(({ name, cell }) => `${toValue(quote(cell), types.get(name)!)} as ${quote(name)}`).join(', ')

function toValue(cell: string, type: string): string {
  if (type === 'VARCHAR') return cell
  if (type !== decimal && type !== fineDecimal) return `cast(${cell} as ${type})`
  // Casting text to a DECIMAL of more than 18 digits takes 9 to 16 µs, to a smaller one 0.1 µs (DuckDB
  // 1.5.6).
  const places = type === decimal ? 6 : 18
  return `case when ${isSmall(cell)} then cast(cast(${cell} as DECIMAL(18,6)) as ${type})
    when ${cell} is null or ${decimalPlaces(cell)} <= ${places} then cast(${cell} as ${type})
    else error('more decimal places than its type') end`
}

/** See `TypeSystem.isExactly`. */
function isExactly(type: string, value: string): string {
  const cell = `cast(${value} as VARCHAR)`
  const canCast = `try_cast(${cell} as ${type}) is not null`
  switch (type) {
    case decimal:
      return `${isSmall(cell)} or (${decimalPlaces(cell)} <= 6 and ${canCast})`
    case fineDecimal:
      return `${decimalPlaces(cell)} <= 18 and ${canCast}`
    // Our JSON is valid; DuckDB rejects only a lone surrogate, which is written as an escape.
    case 'JSON':
      return `not contains(${cell}, '\\ud') or json_valid(${cell})`
    default:
      return canCast
  }
}

const isSmall = (cell: string) => `regexp_full_match(${cell}, '-?[0-9]{1,12}([.][0-9]{1,6}0*)?')`

/**
 * The decimal places of a number, which may have an exponent, without trailing zeros; too large an exponent
 * yields too many places.
 */
const decimalPlaces = (cell: string) =>
  `(length(regexp_extract(${cell}, '[.]([0-9]*?)0*([eE]|$)', 1)) - case when regexp_matches(${cell}, '[eE]')
    then coalesce(try_cast(regexp_extract(${cell}, '[eE](.*)$', 1) as integer), -999999) else 0 end)`

export const duckDbTypes: TypeSystem = {
  types,
  isExactly,
  // An index would have to fit in memory, whatever the table's size.
  hasKeys: false,
  tableOptions: '',
  stagedValue: ({ name }) => `s.${quote(name)}`,
  microseconds: (instant) => `epoch_us(${instant})`,
  retype: (table, types) =>
    [...types].map(([name, type]) => `alter table ${table} alter column ${quote(name)} type ${type}`),
}
