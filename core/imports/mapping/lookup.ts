import { createNearestName } from '../../tables/nearest-name.ts'
import { detectDialect } from '../csv/dialect.ts'
import type { Encoding } from '../csv/encoding.ts'
import { placeOf, readRows } from '../csv/read-rows.ts'
import { MappingError } from '../errors.ts'
import { shownName } from '../file-name.ts'
import { refuseLarge } from '../file-size.ts'
import type { Fault } from '../problems.ts'

/** Translates a file's values to ours: `76.123.456-7` to `sup_0001`. */
export type Lookup = (theirs: string) => { ours: string } | { fault: Fault }

/** The entries of all lookups are held in memory. */
const mostEntries = 100_000

/**
 * Reads a lookup file with two columns, theirs and ours. A header row is harmless, because no cell matches
 * it.
 * @throws {MappingError} it has other columns or too many rows, or translates one value to two
 * @throws {UnreadableFileError} it is not a CSV file, or too large
 */
export async function readLookup(path: string, encoding?: Encoding): Promise<Lookup> {
  const name = shownName(path)
  await refuseLarge(path, 'lookup')
  const entries = new Map<string, { theirs: string; ours: string }>()
  for await (const { cells, ...place } of readRows({ path, dialect: await detectDialect(path, encoding) })) {
    const [theirs = '', ours = '', ...more] = cells.map((cell) => cell.trim())
    const toError = (message: string, withoutValues = message) =>
      new MappingError(`${name}, ${placeOf(place)}: ${message}`, {
        withoutValues: `${name}, ${placeOf(place)}: ${withoutValues}`,
      })
    if (more.some((cell) => cell !== '') || theirs === '' || ours === '')
      throw toError('a lookup file has two columns, theirs and ours, and no empty cells.')
    const known = entries.get(toComparable(theirs))
    if (known !== undefined && known.ours !== ours)
      throw toError(
        `${theirs} maps to ${ours}, but in an earlier row to ${known.ours}.`,
        'the value maps to another one than in an earlier row.',
      )
    entries.set(toComparable(theirs), { theirs, ours })
    if (entries.size > mostEntries) {
      const message = `${name} has more than ${mostEntries.toLocaleString('en')} rows, which is the limit. Keep only the rows that the file looks up.`
      throw new MappingError(message, { withoutValues: message })
    }
  }
  const nearest = createNearestName(() => entries.keys())
  return (theirs) => {
    const found = entries.get(toComparable(theirs))
    if (found !== undefined) return { ours: found.ours }
    const near = nearest(toComparable(theirs))
    const fix = near === undefined ? undefined : entries.get(near)?.theirs
    return { fault: { rule: 'lookup', message: `is not in ${name}`, fix } }
  }
}

/** A tax id with its check digit: RUT in Chile, NIT in Colombia. */
const taxId = /^0*(\d{1,3}\.?\d{3}\.?\d{3}-?[\dk])$/

/**
 * Lower-cases; strips dots, hyphen and leading zeros from tax ids: `76.123.456-K` and `76123456k` are the
 * same.
 */
function toComparable(text: string): string {
  const lower = text.trim().toLowerCase()
  const id = taxId.exec(lower)?.[1]
  return id === undefined ? lower : id.replace(/[.-]/g, '')
}
