import { stringify } from 'csv-stringify/sync'
import { writeDate } from '../cells/dates.ts'
import { toTarget } from './field-target.ts'
import { type ImportKind, type ImportKindName, importKinds } from '../kinds.ts'
import { conventionsOf } from '../cells/locale.ts'
import { withMark } from '../cells/numbers.ts'

/**
 * A CSV header of a kind with one example row, as people of a locale write numbers and dates. Where commas are
 * decimals the delimiter is `;`, as their spreadsheets have it, and a mark says that the text is UTF-8.
 * @throws {MappingError} where the locale is unknown
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
  const holds = toTarget({ kind, name: field })?.meta.kind
  if (holds === 'date') return writeDate(value, conventions.dates)
  return holds === 'decimal' || holds === 'integer' ? withMark(value, conventions.decimal) : value
}
