import { stringify } from 'csv-stringify/sync'
import { writeDate } from '../cells/dates.ts'
import { toTarget } from './field-target.ts'
import { type ImportKind, type ImportKindName, importKinds } from '../kinds.ts'
import { conventionsOf } from '../cells/locale.ts'
import { withMark } from '../cells/numbers.ts'

/**
 * The header of a CSV file of a kind with one example row, in the notation of a locale. With a decimal comma, the
 * delimiter is `;`, as in its spreadsheets, and a byte order mark marks the text as UTF-8.
 * @throws {MappingError} if the locale is unknown
 */
export function template({
  kind: name,
  locale = 'en-US',
}: {
  kind: ImportKindName
  locale?: string
}): string {
  const kind = importKinds[name]
  const conventions = conventionsOf(locale)
  const isComma = conventions.decimal === ','
  const cells = Object.entries(kind.example).map(([field, value]) =>
    localize({ kind, field, value, conventions }),
  )
  return stringify([Object.keys(kind.example), cells], { delimiter: isComma ? ';' : ',', bom: isComma })
}

function localize({
  kind,
  field,
  value,
  conventions,
}: {
  kind: ImportKind
  field: string
  value: string
  conventions: ReturnType<typeof conventionsOf>
}): string {
  const type = toTarget({ kind, name: field })?.meta.kind
  if (type === 'date') return writeDate(value, conventions.dates)
  return type === 'decimal' || type === 'integer' ? withMark(value, conventions.decimal) : value
}
