import type { ColumnKind, WarehouseTable } from '../warehouse/layout.ts'
import { quote } from '../warehouse/sql.ts'

/**
 * The types that a kind of column may have, the preferred one first, each able to hold what the one before it can.
 *
 * DuckDB's DECIMAL has 38 digits and rounds in silence what has more of them behind the point than it was declared
 * with; BIGINT and JSON refuse what they can't hold. So no cell becomes a value before it is known to be exact, and
 * a column with one that is not becomes the next type, at last text.
 */
export const duckDbTypes: Readonly<Record<ColumnKind, readonly [string, ...string[]]>> = {
  text: ['VARCHAR'],
  integer: ['BIGINT', 'DECIMAL(38,0)', 'VARCHAR'],
  position: ['INTEGER'],
  // 20 digits before the point and 18 behind it.
  decimal: ['DECIMAL(38,18)', 'VARCHAR'],
  boolean: ['BOOLEAN'],
  date: ['DATE'],
  timestamp: ['TIMESTAMP WITH TIME ZONE'],
  json: ['JSON', 'VARCHAR'],
}

/** The type of each column, by name. */
export type ColumnTypes = ReadonlyMap<string, string>

export const preferredTypes = ({ columns }: WarehouseTable): ColumnTypes =>
  new Map(columns.map(({ name, kind }) => [name, duckDbTypes[kind][0]]))

/** The columns of a table, made from cells. Fails with a conversion error where a cell is not exactly of its type. */
export const toValues = ({ columns }: WarehouseTable, types: ColumnTypes): string =>
  columns.map(({ name, cell }) => `${toValue(quote(cell), types.get(name)!)} as ${quote(name)}`).join(', ')

function toValue(cell: string, type: string): string {
  if (type === 'VARCHAR') return cell
  if (type !== decimal) return `cast(${cell} as ${type})`
  // From text to a DECIMAL of more than 18 digits takes 16 µs, to a smaller one 0.1 µs (DuckDB 1.5.6).
  return `case when ${isSmall(cell)} then cast(cast(${cell} as DECIMAL(18,6)) as ${decimal})
    when ${digitsBehindPoint(cell)} <= 18 then cast(${cell} as ${decimal})
    else cast('inexact: ' || ${cell} as ${decimal}) end`
}

/** For each column and type that may not suit it, how many cells don't: one row, and how to read it. */
export function toDoubts({ columns }: WarehouseTable) {
  const doubts = columns.flatMap(({ name, kind, cell }) =>
    duckDbTypes[kind].flatMap((type) => {
      const suits = suitsType(quote(cell), type)
      return suits === undefined ? [] : [{ name, kind, type, suits }]
    }),
  )
  return {
    counts: [
      'count(*) as rows',
      ...doubts.map(({ suits }, at) => `count(case when not (${suits}) then 1 end) as c${at}`),
    ].join(', '),
    /** The given types, or wider ones where a cell needs them. */
    widen(types: ColumnTypes, row: Readonly<Record<string, string | null>> | undefined): ColumnTypes {
      const wider = new Map(types)
      for (const [at, { name, kind, type }] of doubts.entries())
        if (wider.get(name) === type && row?.[`c${at}`] !== '0')
          wider.set(name, duckDbTypes[kind][duckDbTypes[kind].indexOf(type) + 1]!)
      return wider
    },
  }
}

/** Whether a cell is null or exactly of a type; undefined where each cell of its kind is. */
function suitsType(cell: string, type: string): string | undefined {
  switch (type) {
    case 'BIGINT':
    case 'DECIMAL(38,0)':
      return `${cell} is null or try_cast(${cell} as ${type}) is not null`
    // JSON of ours is JSON; what DuckDB takes for none is half a pair of surrogates, written as an escape.
    case 'JSON':
      return `${cell} is null or not contains(${cell}, '\\ud') or json_valid(${cell})`
    case decimal:
      return `case when ${cell} is null or ${isSmall(cell)} then true
        else ${digitsBehindPoint(cell)} <= 18 and try_cast(${cell} as ${decimal}) is not null end`
    default:
      return undefined
  }
}

const decimal = 'DECIMAL(38,18)'

const isSmall = (cell: string) => `regexp_full_match(${cell}, '-?[0-9]{1,12}([.][0-9]{1,6})?')`

/** Of a number that may have an exponent; an exponent that is no small number makes it too many. */
const digitsBehindPoint = (cell: string) =>
  `(length(regexp_extract(${cell}, '[.]([0-9]*)', 1)) - case when regexp_matches(${cell}, '[eE]')
    then coalesce(try_cast(regexp_extract(${cell}, '[eE](.*)$', 1) as integer), -999999) else 0 end)`
