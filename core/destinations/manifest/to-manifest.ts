import type { Destination, Publication } from '../destination.ts'
import type { Manifest } from './manifest.ts'

type Arrived = Pick<
  Manifest,
  'tables' | 'rejected' | 'missing' | 'dialect' | 'changes' | 'deletes' | 'warnings'
>

/** The account of a publication, from what it was asked to publish and what arrived. */
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
  return {
    ...asked,
    // What the read says stands behind what was asked, and never in place of it.
    ...publication.facts,
    ...asked,
    // Whatever was kept of an older read: only a proof promises anything.
    ...(publication.facts.verdict !== 'proven' && { completeThrough: null }),
    ...arrived,
    publishedAt: new Date().toISOString(),
    versions: { ...publication.versions },
  }
}
