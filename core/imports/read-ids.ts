import { basename } from 'node:path'
import { nearestName } from '../tables/nearest-name.ts'
import { detectDialect } from './csv/dialect.ts'
import { InvalidFileError, MappingError, UnreadableFileError } from './errors.ts'
import { placeOf, readRows } from './csv/read-rows.ts'
import type { SourceRow } from './csv/scanner.ts'

/** An id as the service has them: numbers, or texts like `sub_1`. Anything else is a slip of the sheet (`501.0`). */
const id = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/

export const isId = (text: string): boolean => id.test(text)

/** What an id looks like, for a sentence. */
export const idRule = 'an id is letters, digits, _ and -, at most 100'

/** So many wrong cells are named. */
const namedProblems = 10

/** The ids in one column of a CSV file, in its order. `empty` counts rows without one, as the ids are taken. */
export interface IdColumn {
  column: string
  empty: number
  ids: () => AsyncGenerator<string>
}

/**
 * Finds the column of a file that holds ids: the one named, else the one called `id`.
 * @throws {UnreadableFileError} where it is no CSV file
 * @throws {MappingError} where it has no such column
 * @throws {InvalidFileError} from `ids`, at the end, where cells hold what can't be an id
 */
export async function openIdColumn(of: { path: string; column?: string | undefined }): Promise<IdColumn> {
  const { path } = of
  const name = basename(path)
  const dialect = await detectDialect(path)
  const rows = readRows({ path, dialect })
  const header = (await rows.next()).value?.cells.map((cell: string) => cell.trim()) ?? []
  await rows.return(undefined)
  const { at, column } = findColumn({ header, name, asked: of.column })
  const found: IdColumn = {
    column,
    empty: 0,
    async *ids() {
      const problems: { place: string; what: string }[] = []
      let wrong = 0
      const tell = (row: SourceRow, what: string) => {
        wrong++
        if (problems.length < namedProblems) problems.push({ place: placeOf(row), what })
      }
      let isHeader = true
      let count = 0
      for await (const row of readRows({ path, dialect })) {
        const text = (row.cells[at] ?? '').trim()
        if (isHeader) isHeader = false
        // A comma inside a cell without quotes: which cell is the id's is not known then.
        else if (row.cells.length > header.length)
          tell(row, `${row.cells.length} cells, and the header ${header.length}`)
        else if (text === '') found.empty++
        else if (!isId(text)) tell(row, shorten(text))
        else {
          count++
          yield text
        }
      }
      if (wrong > 0) {
        const message = (rows: readonly string[]) =>
          `The column ${column} of ${name} has ${wrong === 1 ? 'a row' : `${wrong} rows`} without a plain id (${idRule}): ${rows.join('; ')}${wrong > rows.length ? '; ...' : ''}. Fix them, or name another column.`
        throw new InvalidFileError(message(problems.map(({ place, what }) => `${place} has ${what}`)), {
          withoutValues: message(problems.map(({ place }) => place)),
        })
      }
      if (count === 0) throw new UnreadableFileError(`The column ${column} of ${name} holds no id.`)
    },
  }
  return found
}

const shorten = (text: string) => (text.length > 40 ? `${text.slice(0, 40)}...` : text)

function findColumn(of: { header: readonly string[]; name: string; asked: string | undefined }) {
  const { header, name, asked = 'id' } = of
  const at = header.findIndex((cell) => cell.toLowerCase() === asked.trim().toLowerCase())
  if (at === -1) {
    const nearest = nearestName(asked, header)
    const meant = nearest === undefined ? `Its columns are ${header.join(', ')}.` : `Did you mean ${nearest}?`
    const how = of.asked === undefined ? ' Name the one that holds the ids.' : ''
    const missing = `${name} has no column ${asked}.`
    throw new MappingError(`${missing} ${meant}${how}`, { withoutValues: `${missing}${how}` })
  }
  if (header.some((cell, other) => other > at && cell.toLowerCase() === header[at]?.toLowerCase()))
    throw new MappingError(`${name} has two columns ${header[at]}. Rename the one that is not meant.`, {
      withoutValues: `${name} has two columns ${asked}. Rename the one that is not meant.`,
    })
  return { at, column: header[at] ?? asked }
}
