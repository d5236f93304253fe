import { formatCount } from '../../runs/view/format.ts'
import type { ReadFacts } from './manifest.ts'

/** The manifest has all of them. */
const mostNamed = 10

/** Where the records of the service differ from the schema, one sentence each. Names and counts, never a value. */
export function toDriftWarnings({
  drift,
  unknownFields,
  newFields = [],
  vanishedFields = [],
}: ReadFacts): string[] {
  const misfits = Object.entries(drift).toSorted(([, a], [, b]) => b.count - a.count)
  const total = misfits.reduce((sum, [, { count }]) => sum + count, 0)
  const [values, they] =
    total === 1
      ? ['1 value does not fit its column', 'It is']
      : [`${formatCount(total)} values do not fit their columns`, 'They are']
  const places = misfits.map(([path, { count, example }]) => `${path} ${formatCount(count)} (${example})`)
  return [
    ...(total === 0 ? [] : [`${values}: ${toList(places)} ${they} empty there, and kept in _extra.`]),
    ...(newFields.length === 0
      ? []
      : [
          `The service sends new fields, kept in _extra: ${toList(
            newFields.map((path) => `${shorten(path)} ${formatCount(unknownFields[path] ?? 0)}`),
          )}`,
        ]),
    ...(vanishedFields.length === 0
      ? []
      : [`The service no longer sends fields that an earlier export has: ${toList(vanishedFields)}`]),
  ]
}

const toList = (items: readonly string[]): string =>
  items.length > mostNamed
    ? `${items.slice(0, mostNamed).join(', ')} and ${items.length - mostNamed} more.`
    : `${items.join(', ')}.`

/** The service chooses the name. */
const shorten = (path: string) => (path.length > 80 ? `${path.slice(0, 80)}...` : path)
