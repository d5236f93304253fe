import { createNearestName } from '../../tables/nearest-name.ts'
import { comparableName } from '../cells/refused.ts'
import { detectDialect } from '../csv/table.ts'
import { readRows } from '../csv/rows.ts'
import { InvalidMapping, quote, say } from '../errors.ts'
import { refuseLarge, shownName } from '../source-file.ts'
import type { Fault } from '../problems.ts'
import type { Mapping } from './mapping.ts'

/** Translates a file's values to ours: `76.123.456-7` to `sup_0001`. */
export interface Lookup {
  find(text: string): { ours: string } | { fault: Fault }
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
  for await (const { cells, row } of readRows({ path, dialect })) {
    const [theirs = '', ours = '', ...more] = cells.map((cell) => cell.trim())
    const where = `${name}, row ${row}`
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

/**
 * Whether the plain digits of a tax id (RUT in Chile, NIT in Colombia) end with their check digit is never guessed:
 * `12345674` may be 1.234.567-4, or 12.345.674 without its digit.
 */
function createLookup(name: string, entries: ReadonlyMap<string, Entry>, form: Mapping['taxIds']): Lookup {
  const nearest = createNearestName(() => entries.keys())
  const byBody = indexByBody(entries)

  /** The entry whose tax id has a hyphen where this one has none, or the other way round. */
  function inOtherForm(key: string): Partial<Record<NonNullable<Mapping['taxIds']>, Entry>> {
    const id = parseTaxId(key)
    if (id === undefined) return {}
    const [withDigit, withoutDigit] =
      id.digit === ''
        ? [entries.get(`${id.body.slice(0, -1)}-${id.body.slice(-1)}`), byBody.get(id.body)]
        : [entries.get(id.body + id.digit), entries.get(id.body)]
    return {
      ...(withDigit && { 'with-digit': withDigit }),
      ...(withoutDigit && { 'without-digit': withoutDigit }),
    }
  }

  return {
    find(text) {
      const key = toComparable(text)
      const found = entries.get(key)
      if (found !== undefined) return found
      const others = inOtherForm(key)
      if (form !== undefined && others[form] !== undefined) return others[form]
      const [other] = Object.values(others)
      if (form === undefined && other !== undefined) {
        const message = `is in ${name} only as ${other.theirs}. Say whether ids without a hyphen end with their check digit: --input taxIds=with-digit or taxIds=without-digit`
        return { fault: { rule: 'ambiguous', message, stops: true } }
      }
      const near = other === undefined ? nearest(key) : undefined
      const meant = near === undefined ? other : entries.get(near)
      return { fault: { rule: 'lookup', message: `is not in ${name}`, fix: meant?.theirs } }
    },
  }
}

/** The form in which values are compared: case, and the dots and leading zeros of tax ids, do not count. */
function toComparable(text: string): string {
  const name = comparableName(text)
  const id = parseTaxId(name)
  if (id === undefined) return name
  return id.digit === '' ? id.body : `${id.body}-${id.digit}`
}

/** Entries with a check digit by the rest of their id, unless two share it. */
function indexByBody(entries: ReadonlyMap<string, Entry>): ReadonlyMap<string, Entry | undefined> {
  const byBody = new Map<string, Entry | undefined>()
  for (const [key, entry] of entries) {
    const id = parseTaxId(key)
    if (id === undefined || id.digit === '') continue
    byBody.set(id.body, byBody.has(id.body) ? undefined : entry)
  }
  return byBody
}

/**
 * A tax id without dots and leading zeros. `digit`: its check digit, or '' where nothing separates it from the others.
 * Undefined for any other id, such as a CPF, a CUIT or an RFC.
 */
function parseTaxId(text: string): { body: string; digit: string } | undefined {
  const [, withDigit, digit = ''] =
    /^([\d.]+)-([\dk])$/.exec(text) ??
    /^([\d.]+)(k)$/.exec(text) ??
    /^(\d{1,3}(?:\.\d{3})+)([\dk])$/.exec(text) ??
    []
  const written = withDigit ?? text
  if (!/^(?:\d+|\d{1,3}(?:\.?\d{3})+)$/.test(written)) return undefined
  const body = written.replaceAll('.', '').replace(/^0+/, '')
  return body.length > 10 || body.length < (digit === '' ? 7 : 6) ? undefined : { body, digit }
}
