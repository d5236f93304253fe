import { basename } from 'node:path'
import { nearestName } from '../tables/nearest-name.ts'
import { comparableName, readableName } from './cells/refused.ts'
import { openTable, readTable } from './csv/table.ts'
import { InvalidFile, InvalidMapping, quote, say } from './errors.ts'

/** An id of the service: a number, or a text like `sub_1`. Anything else is a mistake in the sheet (`501.0`). */
const id = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/

export const isId = (text: string): boolean => id.test(text)

/** The form of an id, for a sentence. */
export const idRule = 'ids consist of letters, digits, _ and -, and have at most 100 characters'

/** The most invalid cells listed in a message. */
const mostListed = 10
const longestShown = 40

/**
 * The ids in one column of a CSV file, in file order. While ids are read, `empty` counts rows without one.
 */
export interface IdColumn {
  column: string
  empty: number
  ids: () => AsyncGenerator<string>
}

/**
 * Finds the id column of a file: the named one, or else the one called `id`.
 * @throws {InvalidFile} it is not a CSV file with rows; from `ids`, at the end, if cells are not ids
 * @throws {InvalidMapping} it has no such column
 */
export async function openIdColumn(of: { path: string; column?: string | undefined }): Promise<IdColumn> {
  const { path } = of
  const name = basename(path)
  // Ids are ASCII, so letters of another encoding in the other columns do not matter.
  const table = await openTable(path, { encoding: 'windows-1252' })
  const header = table.header.map(readableName)
  const wanted = readableName(of.column ?? 'id')
  const named = header.flatMap((cell, index) =>
    comparableName(cell) === comparableName(wanted) ? [index] : [],
  )
  const [at] = named
  if (at === undefined) {
    const nearest = nearestName(wanted, header)
    const suggestion =
      nearest === undefined ? `Its columns are ${header.join(', ')}.` : `Did you mean ${nearest}?`
    const advice = of.column === undefined ? ' Name the column that has the ids.' : ''
    throw new InvalidMapping(say`${name} has no column ${wanted}. ${quote(suggestion, '')}${advice}`)
  }
  const column = header[at] ?? ''
  if (named.length > 1)
    throw new InvalidMapping(say`${name} has two columns ${quote(column, wanted)}. Rename one of them.`)
  const found: IdColumn = {
    column,
    empty: 0,
    async *ids() {
      const wrong: { place: string; content: string }[] = []
      let wrongRows = 0
      let count = 0
      for await (const row of readTable(path, table)) {
        const { length } = row.cells
        const text = (row.cells[at] ?? '').trim()
        // An unquoted comma in a cell makes it unknown which cell is the id.
        const isShaped = length <= header.length
        if (isShaped && text === '') found.empty++
        else if (isShaped && isId(text)) {
          count++
          yield text
        } else if (wrongRows++ < mostListed) {
          const shown = text.length > longestShown ? `${text.slice(0, longestShown)}...` : text
          const content = isShaped ? shown : `${length} cells, but the header has ${header.length}`
          wrong.push({ place: `row ${row.row}`, content })
        }
      }
      if (wrongRows > 0) {
        const rows = wrongRows === 1 ? '1 row' : `${wrongRows} rows`
        const more = wrongRows > wrong.length ? '; ...' : ''
        const cells = wrong.map(({ place, content }) => `${place} has ${content}`).join('; ')
        const places = wrong.map(({ place }) => place).join('; ')
        throw new InvalidFile(
          say`The column ${column} of ${name} has ${rows} without a valid id (${idRule}): ${quote(cells, places)}${more}. Fix them, or name another column.`,
        )
      }
      if (count === 0) throw new InvalidFile(`The column ${column} of ${name} has no ids.`)
    },
  }
  return found
}
