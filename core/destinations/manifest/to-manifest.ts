import type { Destination, Publication } from '../destination.ts'
import { toDriftWarnings } from './drift-warnings.ts'
import type { Table } from '../../tables/table.ts'
import { sumOf } from '../parts/read-parts.ts'
import type { Manifest, PublishedTable } from './manifest.ts'

type Arrived = Pick<
  Manifest,
  'tables' | 'rejected' | 'missing' | 'dialect' | 'changes' | 'deletes' | 'lost' | 'warnings'
> & { drift?: Manifest['drift'] }

/** Builds the manifest from the publication and from what arrived. */
export function toManifest(options: {
  publication: Publication
  destination: Destination['name']
  arrived: Arrived
}): Manifest {
  const { publication, destination, arrived } = options
  const { run, resource, workspace, testMode, mode, filters, capped, excluded, hashed, hashedWith } =
    publication
  const asked = {
    version: 1 as const,
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
  }
  const facts = { ...publication.facts, drift: arrived.drift ?? publication.facts.drift }
  const warnings = [...toDriftWarnings(facts), ...(arrived.warnings ?? [])]
  return {
    ...asked,
    // The facts of the read come after the request and never override it.
    ...facts,
    ...asked,
    // Only a proven read guarantees anything, whatever facts it kept of an older read.
    ...(publication.facts.verdict !== 'proven' && { completeThrough: null }),
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
  key: [...table.key],
  columns: [...table.columns],
  parts: sumOf(parts, table.name),
  ...arrived,
})
