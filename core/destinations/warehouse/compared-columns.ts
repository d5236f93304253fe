import { crc32 } from 'node:zlib'
import type { Kind } from '../../tables/table.ts'
import type { PublishedTable } from '../manifest/manifest.ts'
import { textColumnOf } from '../layout.ts'
import { toPlainJson, toPlainNumber } from './plain-value.ts'
import type { TypeSystem } from './column-types.ts'
import type { ResultRow } from './session.ts'
import { quote } from '../sql.ts'

/** The query column for a timestamp's instant, beside its text. */
const instantOf = (name: string) => `${name} (instant)`

/** The names of a table's own columns in a warehouse. */
export const columnsOf = ({ columns }: PublishedTable): string[] =>
  columns.flatMap((column) => [...new Set([column.name, textColumnOf(column)])])

/**
 * SQL for a table's own columns as text (read with `textIn`), under their own names, plus the instants of
 * its timestamps.
 */
export const toComparable = ({ columns }: PublishedTable, typeSystem: TypeSystem): string =>
  columns
    .flatMap((column) => {
      const { name, kind } = column
      const text = `'=' || cast(${quote(textColumnOf(column))} as text) as ${quote(name)}`
      if (kind !== 'timestamp') return [text]
      return [text, `cast(${typeSystem.microseconds(quote(name))} as text) as ${quote(instantOf(name))}`]
    })
    .join(', ')

/**
 * The text of a column in such a row. It is prefixed with `=`, because DuckDB's driver strips a leading byte
 * order mark.
 */
export const textIn = (row: ResultRow, name: string): string | null => row[name]?.slice(1) ?? null

/** Upper bound of the sums, so that they stay exact. */
const bound = 2 ** 48

/** Order-independent sums of a table's columns; a difference in a column changes its sum. */
export interface ColumnSums {
  /** Adds a row of a file. */
  addCells(key: string, cells: readonly (string | null)[]): void
  /** Adds a row of the warehouse, as selected by `toComparable`. */
  addRow(key: string, row: ResultRow): void
  /** The columns whose sums differ from another's. */
  differences(other: ColumnSums): string[]
  readonly byColumn: ReadonlyMap<string, number>
}

export function createColumnSums({ columns }: PublishedTable): ColumnSums {
  const byColumn = new Map<string, number>()
  const add = (name: string, key: string, text: string | null | undefined) => {
    const sum = text === null || text === undefined ? crc32(`${key}\0`) : crc32(`${key}\0=${text}`)
    byColumn.set(name, ((byColumn.get(name) ?? 0) + sum) % bound)
  }
  return {
    byColumn,
    addCells(key, cells) {
      for (const [at, { name, kind }] of columns.entries()) {
        const cell = cells[at] ?? null
        add(name, key, cell === null ? null : toEqual(kind, cell))
        if (kind === 'timestamp') add(instantOf(name), key, cell === null ? null : toMicroseconds(cell))
      }
    },
    addRow(key, row) {
      for (const { name, kind } of columns) {
        const cell = textIn(row, name)
        add(name, key, cell === null ? null : toEqual(kind, cell))
        if (kind === 'timestamp') add(instantOf(name), key, row[instantOf(name)])
      }
    },
    differences: (other) =>
      [...byColumn].filter(([name, sum]) => other.byColumn.get(name) !== sum).map(([name]) => name),
  }
}

/** Normalizes a cell for comparison: warehouses write numbers and JSON in their own notations. */
function toEqual(kind: Kind, cell: string): string {
  if (kind === 'integer' || kind === 'decimal') return toPlainNumber(cell)
  return kind === 'json' ? toPlainJson(cell) : cell
}

/** Finer digits are in the text alone: each warehouse cuts them from the instant. */
function toMicroseconds(timestamp: string): string {
  const [, seconds = '', digits = '', offset = ''] = /^(.{19})(?:\.(\d+))?(.+)$/.exec(timestamp) ?? []
  const fraction = BigInt(digits.slice(0, 6).padEnd(6, '0'))
  return `${BigInt(Date.parse(`${seconds}${offset}`)) * 1000n + fraction}`
}
