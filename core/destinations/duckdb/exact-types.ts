import type { ResultRow } from '../warehouse/session.ts'
import type { ColumnKind, WarehouseTable } from '../warehouse/layout.ts'
import { quote } from '../warehouse/sql.ts'

const decimal = 'DECIMAL(26,6)'
const fineDecimal = 'DECIMAL(38,18)'

/**
 * The types that a kind of column may have, the preferred one first, each able to hold what the one before it can.
 *
 * DuckDB rounds silently what has more decimal places than a DECIMAL was declared with. Both DECIMALs here have 20
 * digits before the point. A product of two DECIMALs of up to 18 digits has 18 again and overflows with ordinary
 * amounts, so decimals begin with 26 digits: their products have 38.
 */
export const duckDbTypes: Readonly<Record<ColumnKind, readonly [string, ...string[]]>> = {
  text: ['VARCHAR'],
  integer: ['BIGINT', 'DECIMAL(38,0)', 'VARCHAR'],
  position: ['INTEGER'],
  decimal: [decimal, fineDecimal, 'VARCHAR'],
  boolean: ['BOOLEAN'],
  date: ['DATE'],
  timestamp: ['TIMESTAMP WITH TIME ZONE'],
  json: ['JSON', 'VARCHAR'],
}

/** The type of each column, by name. */
export type ColumnTypes = ReadonlyMap<string, string>

export const preferredTypes = ({ columns }: WarehouseTable): ColumnTypes =>
  new Map(columns.map(({ name, kind }) => [name, duckDbTypes[kind][0]]))

/** The columns of a table, made from cells that are exactly of these types. */
export const toValues = ({ columns }: WarehouseTable, types: ColumnTypes): string =>
  columns.map(({ name, cell }) => `${toValue(quote(cell), types.get(name)!)} as ${quote(name)}`).join(', ')

function toValue(cell: string, type: string): string {
  if (type === 'VARCHAR') return cell
  if (type !== decimal && type !== fineDecimal) return `cast(${cell} as ${type})`
  // From text to a DECIMAL of more than 18 digits takes 9 to 16 µs, to a smaller one 0.1 µs (DuckDB 1.5.6).
  return `case when ${isSmall(cell)} then cast(cast(${cell} as DECIMAL(18,6)) as ${type})
    else cast(${cell} as ${type}) end`
}

/** The cells of a column that may need another type than the first of its kind. */
const doubtful = ({ columns }: WarehouseTable) => columns.filter(({ kind }) => duckDbTypes[kind].length > 1)

/**
 * One row over all cells of a table: for each doubtful column, the place among the types of its kind of the first one
 * that holds every cell exactly. Undefined where no column is doubtful.
 */
export function leastTypesQuery(table: WarehouseTable, rows: string): string | undefined {
  const places = doubtful(table).map(({ name, kind, cell }) => {
    const fits = duckDbTypes[kind]
      .slice(0, -1)
      .map((type, at) => `when ${isExactly(type, quote(cell))} then ${at}`)
    return `max(case when ${quote(cell)} is null then 0 ${fits.join(' ')} else ${fits.length} end) as ${quote(name)}`
  })
  return places.length === 0 ? undefined : `select ${places.join(', ')} from ${rows}`
}

/** The types that columns have, or wider ones where the row of `leastTypesQuery` says that a cell needs them. */
export function widenTypes(
  table: WarehouseTable,
  types: ColumnTypes,
  found: ResultRow | undefined,
): ColumnTypes {
  const wider = new Map(types)
  for (const { name, kind } of doubtful(table)) {
    const ladder = duckDbTypes[kind]
    const at = Math.max(ladder.indexOf(types.get(name)!), Number(found?.[name] ?? 0))
    wider.set(name, ladder[at]!)
  }
  return wider
}

/** Whether a cell that is not null is exactly of a type. */
function isExactly(type: string, cell: string): string {
  const canCast = `try_cast(${cell} as ${type}) is not null`
  switch (type) {
    case decimal:
      return `${isSmall(cell)} or (${decimalPlaces(cell)} <= 6 and ${canCast})`
    case fineDecimal:
      return `${decimalPlaces(cell)} <= 18 and ${canCast}`
    // Our JSON is JSON; DuckDB rejects only half a pair of surrogates, which is written as an escape.
    case 'JSON':
      return `not contains(${cell}, '\\ud') or json_valid(${cell})`
    default:
      return canCast
  }
}

const isSmall = (cell: string) => `regexp_full_match(${cell}, '-?[0-9]{1,12}([.][0-9]{1,6}0*)?')`

/** Of a number that may have an exponent, without zeros at the end; an exponent that is too large makes it too many. */
const decimalPlaces = (cell: string) =>
  `(length(regexp_extract(${cell}, '[.]([0-9]*?)0*([eE]|$)', 1)) - case when regexp_matches(${cell}, '[eE]')
    then coalesce(try_cast(regexp_extract(${cell}, '[eE](.*)$', 1) as integer), -999999) else 0 end)`
