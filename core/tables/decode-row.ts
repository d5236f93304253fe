import type { Kind, Table } from './table.ts'

/** A cell or a row that is none of its table: the file was changed, or belongs to another table. */
class MalformedRowError extends Error {
  override readonly name = 'MalformedRowError'
}

/**
 * A CSV row of a table as JSON values by column: JSON columns parsed, numbers with every digit (as raw JSON where
 * a number would change them). The cells are read with `readCell`, so that null and '' are apart.
 * @throws {MalformedRowError}
 */
export function decodeRow(table: Table, cells: readonly (string | null)[]): Record<string, unknown> {
  const { name, columns } = table
  if (cells.length !== columns.length)
    throw new MalformedRowError(`A row of ${name} has ${columns.length} cells, and this one ${cells.length}.`)
  const values = columns.map((column, index): [string, unknown] => {
    const cell = cells[index] ?? null
    const value = cell === null ? null : decodeCell[column.kind](cell)
    if (value === undefined)
      throw new MalformedRowError(`${name}.${column.name} is ${column.kind}, and a row has ${cell} there.`)
    return [column.name, value]
  })
  return Object.fromEntries(values)
}

const asText = (cell: string) => cell

const decodeCell: Readonly<Record<Kind, (cell: string) => unknown>> = {
  text: asText,
  date: asText,
  timestamp: asText,
  boolean: (cell) => (cell === 'true' ? true : cell === 'false' ? false : undefined),
  integer: parseExactly,
  decimal: parseExactly,
  json: parseExactly,
}

/** JSON with every number as it is written; undefined where the text is no JSON. */
function parseExactly(text: string): unknown {
  try {
    return JSON.parse(text, (_key, value, { source }) =>
      typeof value === 'number' && `${value}` !== source ? JSON.rawJSON(source!) : value,
    )
  } catch {
    return undefined
  }
}
