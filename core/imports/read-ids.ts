import { basename } from 'node:path'
import { nearestName } from '../tables/nearest-name.ts'
import { comparableName, readableName } from './cells/invisible.ts'
import { placeOf } from './csv/rows.ts'
import { openTable, readTable } from './csv/table.ts'
import { InvalidFileError, MappingError, quote, say, UnreadableFileError } from './errors.ts'

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
 * @throws {UnreadableFileError} it is not a CSV file with rows
 * @throws {MappingError} it has no such column
 * @throws {InvalidFileError} from `ids`, at the end, if cells are not ids
 */
export async function openIdColumn({
  path,
  column: asked,
}: {
  path: string
  column?: string | undefined
}): Promise<IdColumn> {
  const name = basename(path)
  // Ids are ASCII, so letters of another encoding in the other columns do not matter.
  const table = await openTable(path, { encoding: 'windows-1252' })
  const header = table.header.map(readableName)
  const at = findColumn({ header, name, asked })
  const column = header[at] ?? ''
  const found: IdColumn = {
    column,
    empty: 0,
    async *ids() {
      const wrong: { place: string; content: string }[] = []
      let wrongRows = 0
      let count = 0
      for await (const row of readTable(path, table)) {
        const text = (row.cells[at] ?? '').trim()
        // An unquoted comma in a cell makes it unknown which cell is the id.
        const isShaped = row.cells.length <= header.length
        if (isShaped && text === '') found.empty++
        else if (isShaped && isId(text)) {
          count++
          yield text
        } else {
          wrongRows++
          const content = isShaped
            ? shorten(text)
            : `${row.cells.length} cells, but the header has ${header.length}`
          if (wrong.length < mostListed) wrong.push({ place: placeOf(row), content })
        }
      }
      if (wrongRows > 0) {
        const rows = wrongRows === 1 ? '1 row' : `${wrongRows} rows`
        const more = wrongRows > wrong.length ? '; ...' : ''
        const cells = wrong.map(({ place, content }) => `${place} has ${content}`)
        const places = wrong.map(({ place }) => place)
        throw new InvalidFileError(
          say`The column ${column} of ${name} has ${rows} without a valid id (${idRule}): ${quote(cells.join('; '), places.join('; '))}${more}. Fix them, or name another column.`,
        )
      }
      if (count === 0) throw new UnreadableFileError(`The column ${column} of ${name} has no ids.`)
    },
  }
  return found
}

const shorten = (text: string) => (text.length > longestShown ? `${text.slice(0, longestShown)}...` : text)

function findColumn({
  header,
  name,
  asked,
}: {
  header: readonly string[]
  name: string
  asked: string | undefined
}): number {
  const wanted = readableName(asked ?? 'id')
  const isWanted = (cell: string) => comparableName(cell) === comparableName(wanted)
  const at = header.findIndex(isWanted)
  if (at === -1) {
    const nearest = nearestName(wanted, header)
    const suggestion =
      nearest === undefined ? `Its columns are ${header.join(', ')}.` : `Did you mean ${nearest}?`
    const advice = asked === undefined ? ' Name the column that has the ids.' : ''
    throw new MappingError(say`${name} has no column ${wanted}. ${quote(suggestion, '')}${advice}`)
  }
  if (header.filter(isWanted).length > 1)
    throw new MappingError(
      say`${name} has two columns ${quote(header[at] ?? '', wanted)}. Rename one of them.`,
    )
  return at
}
