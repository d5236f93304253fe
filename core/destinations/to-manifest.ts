import { formatCount } from '../runs/view/format.ts'
import { extraColumn, type Table } from '../tables/table.ts'
import type { Publication } from './destination.ts'
import type { Manifest, PublishedTable, ReadFacts } from './manifest.ts'
import { sumOf } from './parts.ts'

/** Builds the manifest from the publication, the facts that are true of this destination, and what arrived there. */
export function toManifest(options: {
  publication: Publication
  destination: Manifest['destination']
  facts: ReadFacts
  arrived: Pick<
    Manifest,
    'tables' | 'rejected' | 'missing' | 'certificate' | 'dialect' | 'changes' | 'deletes' | 'warnings'
  >
}): Manifest {
  const { publication, destination, facts, arrived } = options
  const { run, resource, workspace, testMode, mode, filters, capped, excluded, hashed, hashedWith } =
    publication
  const warnings = [...toDriftWarnings({ ...facts, excluded }), ...(arrived.warnings ?? [])]
  return {
    version: 1,
    run,
    resource,
    destination,
    workspace,
    testMode,
    mode,
    filters: { ...filters },
    capped,
    excluded: [...excluded],
    hashed: [...hashed],
    ...(hashedWith !== undefined && { hashedWith }),
    ...facts,
    // A read that is proven by itself may not be in a warehouse without the reads before it.
    completeThrough: facts.verdict === 'proven' ? facts.completeThrough : null,
    ...(publication.references && { references: [...publication.references] }),
    ...arrived,
    ...(warnings.length > 0 && { warnings }),
    publishedAt: new Date().toISOString(),
    versions: { ...publication.versions },
  }
}

/** A table of the manifest: what the read made of it, and what arrived. */
export const toPublishedTable = (
  { parts }: Publication,
  table: Table,
  arrived: Pick<PublishedTable, 'rows' | 'files' | 'kept'>,
): PublishedTable => ({
  ...table,
  parts: sumOf(parts, table.name),
  ...arrived,
})

/** The manifest has all of them. */
const mostNamed = 10

/** Where the records of the service differ from the schema, one sentence each. Names and counts, never a value. */
export function toDriftWarnings({
  drift,
  unknownFields,
  newFields = [],
  vanishedFields = [],
  excluded,
}: ReadFacts & Pick<Publication, 'excluded'>): string[] {
  const misfits = Object.entries(drift).toSorted(([, a], [, b]) => b.count - a.count)
  const total = misfits.reduce((sum, [, { count }]) => sum + count, 0)
  const [values, they] =
    total === 1
      ? ['1 value does not fit its column', 'It is']
      : [`${formatCount(total)} values do not fit their columns`, 'They are']
  const kept = excluded.some((path) => path.endsWith(`.${extraColumn}`)) ? ', unless it is excluded' : ''
  const places = misfits.map(([path, { count, example }]) => `${path} ${formatCount(count)} (${example})`)
  return [
    ...(total === 0
      ? []
      : [`${values}: ${toList(places)} ${they} empty there, and kept in ${extraColumn}${kept}.`]),
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
const shorten = (path: string) => (path.length > 80 ? `${path.slice(0, 80).toWellFormed()}...` : path)
