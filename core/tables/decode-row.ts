import type { Kind, Table } from './table.ts'

/** A cell or row does not fit its table: the file was modified, or belongs to another table. */
class MalformedRowError extends Error {
  override readonly name = 'MalformedRowError'
}

/**
 * Decodes a CSV row into JSON values by column: JSON columns parsed, numbers with every digit (as raw JSON
 * if parsing would change them). Read the cells with `readCell`, which keeps null and '' apart.
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

/** Parses JSON, keeping every number as written; undefined if the text is not JSON. */
function parseExactly(text: string): unknown {
  try {
    return JSON.parse(text, (_key, value, { source }) =>
      typeof value === 'number' && `${value}` !== source ? JSON.rawJSON(source!) : value,
    )
  } catch {
    return undefined
  }
}
