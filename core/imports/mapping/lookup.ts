import { basename } from 'node:path'
import { createNearestName } from '../../tables/nearest-name.ts'
import { detectDialect } from '../csv/dialect.ts'
import { MappingError } from '../errors.ts'
import { refuseLarge } from '../file-size.ts'
import type { Fault } from '../problems.ts'
import { placeOf, readRows } from '../csv/read-rows.ts'

/** Their names to our ids: `76.123.456-7` to `sup_0001`. */
export type Lookup = (theirs: string) => { ours: string } | { fault: Fault }

/** Each is held in memory, and so are those of every other field. */
const mostEntries = 100_000

/**
 * Reads a look-up file: two columns, theirs and ours. Its first row may be a header: then it stands for nothing
 * that a file holds.
 * @throws {MappingError} where it has other columns or too many rows, or one of theirs stands for two of ours
 * @throws {UnreadableFileError} where it is no CSV file, or too large
 */
export async function readLookup(path: string): Promise<Lookup> {
  const name = basename(path)
  await refuseLarge(path, 'lookup')
  const entries = new Map<string, { theirs: string; ours: string }>()
  for await (const { cells, ...place } of readRows({ path, dialect: await detectDialect(path) })) {
    const [from = '', to = '', ...more] = cells.map((cell) => cell.trim())
    const toError = ({ words, withoutValues = words }: { words: string; withoutValues?: string }) =>
      new MappingError(`${name}, ${placeOf(place)}: ${words}`, {
        withoutValues: `${name}, ${placeOf(place)}: ${withoutValues}`,
      })
    if (more.some((cell) => cell !== '') || from === '' || to === '')
      throw toError({ words: 'a look-up file has two columns, theirs and ours, and both are filled.' })
    const known = entries.get(toComparable(from))
    if (known !== undefined && known.ours !== to)
      throw toError({
        words: `${from} stands for ${to}, and above it stands for ${known.ours}.`,
        withoutValues: 'stands for another one of ours than in a row above.',
      })
    entries.set(toComparable(from), { theirs: from, ours: to })
    if (entries.size > mostEntries) {
      const most = mostEntries.toLocaleString('en')
      const message = `${name} has more than ${most} rows, and at most that many are looked up. Keep only what the file looks up.`
      throw new MappingError(message, { withoutValues: message })
    }
  }
  const nearest = createNearestName(() => entries.keys())
  return (theirs) => {
    const found = entries.get(toComparable(theirs))
    if (found !== undefined) return { ours: found.ours }
    const near = nearest(toComparable(theirs))
    const fix = near === undefined ? undefined : entries.get(near)?.theirs
    return { fault: { rule: 'lookup', words: `is not in ${name}`, ...(fix === undefined ? {} : { fix }) } }
  }
}

/** A tax id with its check digit: RUT in Chile, NIT in Colombia. */
const taxId = /^0*(\d{1,3}\.?\d{3}\.?\d{3}-?[\dk])$/

/** Without capitals; tax ids without dots, hyphen and zeros in front: `76.123.456-K` and `76123456k` are one. */
function toComparable(text: string): string {
  const lower = text.trim().toLowerCase()
  const id = taxId.exec(lower)?.[1]
  return id === undefined ? lower : id.replace(/[.-]/g, '')
}
