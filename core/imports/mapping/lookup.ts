import { createNearestName } from '../../tables/nearest-name.ts'
import { comparableName } from '../cells/invisible.ts'
import { detectDialect } from '../csv/table.ts'
import { placeOf, readRows } from '../csv/rows.ts'
import { InvalidMapping, quote, say } from '../errors.ts'
import { refuseLarge, shownName } from '../source-file.ts'
import type { Fault } from '../problems.ts'
import type { Mapping } from './mapping.ts'

/**
 * Tax ids whose last sign is a check digit: RUT in Chile, NIT in Colombia. `12345674` alone may be 1.234.567-4, or
 * 12.345.674 without its digit.
 */

export type TaxId = { body: string; digit: string } | { digits: string }

/** Dots and leading zeros do not count. Undefined for any other id, such as a CPF, a CUIT or an RFC. */
export function parseTaxId(text: string): TaxId | undefined {
  const [, body = '', digit = ''] =
    /^([\d.]+)-([\dk])$/.exec(text) ??
    /^([\d.]+)(k)$/.exec(text) ??
    /^(\d{1,3}(?:\.\d{3})+)([\dk])$/.exec(text) ??
    []
  if (digit !== '') {
    const digits = digitsOf(body)
    return digits === undefined || digits.length < 6 ? undefined : { body: digits, digit }
  }
  const digits = digitsOf(text)
  return digits === undefined || digits.length < 7 ? undefined : { digits }
}

function digitsOf(text: string): string | undefined {
  if (!/^(?:\d+|\d{1,3}(?:\.?\d{3})+)$/.test(text)) return undefined
  const digits = text.replaceAll('.', '').replace(/^0+/, '')
  return digits.length <= 10 ? digits : undefined
}

/** `12345674` as a tax id with its digit, and without it. */
export const taxIdReadings = (digits: string) => ({
  withDigit: `${grouped(digits.slice(0, -1))}-${digits.slice(-1)}`,
  withoutDigit: grouped(digits),
})

const grouped = (digits: string) => digits.replace(/\B(?=(?:\d{3})+$)/g, '.')

/**
 * Whether ids end with their check digits: nearly all of them pass. Of three that do not, one of 700 files passes by
 * chance.
 */
export function haveCheckDigits(ids: Iterable<string>, fewest = 3): boolean {
  const all = [...ids]
  return [rutDigit, nitDigit].some((digitOf) => {
    const passed = all.filter((id) => digitOf(id.slice(0, -1)) === id.slice(-1)).length
    return passed >= fewest && passed >= all.length * 0.75
  })
}

const rutWeights = [2, 3, 4, 5, 6, 7]
const nitWeights = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43]

const rutDigit = (body: string) => '0k987654321'.charAt(remainder(body, rutWeights))
const nitDigit = (body: string) => '01987654321'.charAt(remainder(body, nitWeights))

const remainder = (body: string, weights: readonly number[]): number =>
  Array.from(body, Number)
    .toReversed()
    .reduce((sum, digit, index) => sum + digit * (weights[index % weights.length] ?? 0), 0) % 11

/** Translates a file's values to ours: `76.123.456-7` to `sup_0001`. */
export interface Lookup {
  find(cell: { text: string; row: number }): { ours: string } | { fault: Fault }
  /** Once all cells are found: the doubt whether tax ids have their check digit. */
  conclude(): (Fault & { row: number; value: string }) | undefined
}

interface Entry {
  theirs: string
  ours: string
}

/** The entries of all lookups are held in memory. */
const mostEntries = 100_000

/**
 * Reads a lookup file with two columns, theirs and ours. A header row is harmless, because no cell matches
 * it.
 * @throws {InvalidMapping} it has other columns or too many rows, or translates one value to two
 * @throws {InvalidFile} it is not a CSV file, or too large
 */
export async function readLookup(
  path: string,
  options: Pick<Mapping, 'encoding' | 'taxIds'> = {},
): Promise<Lookup> {
  const name = shownName(path)
  await refuseLarge(path, 'lookup')
  const dialect = await detectDialect(path, options.encoding)
  const entries = new Map<string, Entry>()
  for await (const { cells, ...place } of readRows({ path, dialect })) {
    const [theirs = '', ours = '', ...more] = cells.map((cell) => cell.trim())
    const where = `${name}, ${placeOf(place)}`
    if (more.some((cell) => cell !== '') || theirs === '' || ours === '')
      throw new InvalidMapping(
        `${where}: a lookup file has two columns, theirs and ours, and no empty cells.`,
      )
    const key = toComparable(theirs)
    const known = entries.get(key)
    if (known !== undefined && known.ours !== ours)
      throw new InvalidMapping(
        say`${where}: ${quote(theirs, 'the value')} maps to ${quote(ours, 'one value')}, but in an earlier row to ${quote(known.ours, 'another')}.`,
      )
    entries.set(key, { theirs, ours })
    if (entries.size > mostEntries)
      throw new InvalidMapping(
        `${name} has more than ${mostEntries.toLocaleString('en')} rows, which is the limit. Keep only the rows that the file looks up.`,
      )
  }
  return createLookup(name, entries, options.taxIds)
}

function createLookup(name: string, entries: ReadonlyMap<string, Entry>, form: Mapping['taxIds']): Lookup {
  const nearest = createNearestName(() => entries.keys())
  const byBody = indexByBody(entries)
  /** Distinct tax ids without a hyphen that are not in the lookup file as they are. */
  const plainCells = new Set<string>()
  let foundAsTheyAre = 0
  /** The first cell that was found in the other form, as a tax id with its digit. */
  let first: { row: number; value: string; digits: string; isPlain: boolean } | undefined

  function unknown(key: string, other?: Entry): { fault: Fault } {
    const near = other === undefined ? nearest(key) : undefined
    const entry = near === undefined ? other : entries.get(near)
    return { fault: { rule: 'lookup', message: `is not in ${name}`, fix: entry?.theirs } }
  }

  return {
    find({ text, row }) {
      const key = toComparable(text)
      const found = entries.get(key)
      if (found !== undefined) {
        foundAsTheyAre += 1
        return found
      }
      const id = parseTaxId(key)
      if (id === undefined) return unknown(key)
      const isPlain = 'digits' in id
      const digits = isPlain ? id.digits : id.body + id.digit
      if (isPlain && plainCells.size < mostEntries) plainCells.add(digits)
      const withDigit = entries.get(isPlain ? dashed(digits) : digits)
      const withoutDigit = isPlain ? byBody.get(digits) : entries.get(id.body)
      if (form === 'without-digit') return withoutDigit ?? unknown(key)
      if (withDigit === undefined) return unknown(key, withoutDigit)
      first ??= { row, value: text, digits, isPlain }
      return withDigit
    },
    conclude() {
      if (form !== undefined) return undefined
      const stop = {
        rule: 'ambiguous',
        row: first?.row ?? 1,
        value: first?.value ?? '',
        stops: true,
      } as const
      const options = 'Set --tax-ids with-digit or --tax-ids without-digit'
      if (first === undefined) {
        const isMissing =
          plainCells.size >= 3 &&
          plainCells.size > foundAsTheyAre &&
          !haveCheckDigits(plainCells) &&
          (byBody.size > 0 || haveCheckDigits(plainIds(entries), 5))
        const message = `has ids without their check digits: most of them fail it, and those in ${name} have one. ${options}`
        return isMissing ? { ...stop, message } : undefined
      }
      const { digits, isPlain } = first
      const ids = isPlain ? plainCells : plainIds(entries)
      if (haveCheckDigits(ids)) return undefined
      const { withDigit, withoutDigit } = taxIdReadings(digits)
      const message = isPlain
        ? `could mean ${withDigit}, or ${withoutDigit} without its check digit${ids.size < 3 ? '' : ', as most ids of the column fail it'}. ${options}`
        : `is in ${name} as ${digits}, which could mean ${withDigit}, or ${withoutDigit} without its check digit. ${options}`
      return { ...stop, message }
    },
  }
}

/** The form in which values are compared: case, and the dots and leading zeros of tax ids, do not count. */
function toComparable(text: string): string {
  const name = comparableName(text)
  const id = parseTaxId(name)
  if (id === undefined) return name
  return 'digits' in id ? id.digits : `${id.body}-${id.digit}`
}

const dashed = (digits: string) => `${digits.slice(0, -1)}-${digits.slice(-1)}`

/** Entries with a check digit by the rest of their id, unless two share it. */
function indexByBody(entries: ReadonlyMap<string, Entry>): ReadonlyMap<string, Entry> {
  const all = new Map<string, Entry>()
  const shared = new Set<string>()
  for (const [key, entry] of entries) {
    const id = parseTaxId(key)
    if (id === undefined || 'digits' in id) continue
    if (all.has(id.body)) shared.add(id.body)
    all.set(id.body, entry)
  }
  for (const body of shared) all.delete(body)
  return all
}

const plainIds = (entries: ReadonlyMap<string, Entry>): ReadonlySet<string> =>
  new Set([...entries.keys()].filter((key) => /^\d{7,10}$/.test(key)))
