import { stringify } from 'csv-stringify/sync'
import { conventionsOf, type DateOrder, readDate, withMark, writeDate } from '../cells/notation.ts'
import { type ImportKindName, importKinds } from '../kinds.ts'
import { toTarget } from './columns.ts'

/**
 * A CSV header of a kind with one example row, in the notation of a locale. With a decimal comma, the
 * delimiter is `;`, as in that locale's spreadsheets, and a byte order mark marks the text as UTF-8.
 * @throws {InvalidMapping} the locale is unknown
 */
export function template({
  kind: name,
  locale = 'en-US',
}: {
  kind: ImportKindName
  locale?: string
}): string {
  const kind = importKinds[name]
  const { decimal, dates } = conventionsOf(locale)
  const cells = Object.entries(kind.example).map(([field, value]) => {
    const type = toTarget(kind, field)?.meta.kind
    if (type === 'date') return localDate(value, locale, dates)
    return type === 'decimal' || type === 'integer' ? withMark(value, decimal) : value
  })
  const isComma = decimal === ','
  return stringify([Object.keys(kind.example), cells], { delimiter: isComma ? ';' : ',', bom: isComma })
}

/** Formats a date as the locale does, if an import can read that back. */
function localDate(date: string, locale: string, order: DateOrder): string {
  const format = new Intl.DateTimeFormat(locale, {
    day: '2-digit',
    month: '2-digit',
    year: 'numeric',
    calendar: 'gregory',
    numberingSystem: 'latn',
    timeZone: 'UTC',
  })
  const text = format.format(new Date(date))
  const reading = readDate(text, order)
  return 'date' in reading && reading.date === date ? text : writeDate(date, order)
}
