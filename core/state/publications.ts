import { relative, resolve } from 'node:path'
import type { Store } from './store.ts'

/** One list or set of documents of a run, as published in one destination. */
export interface Publication {
  run: string
  resource: string
  destination: string
  /** The publishing root or schema, if the export named one. */
  place?: string
  /** What tells this destination from others of its kind: a root, a store, or a server with database and schema. */
  location: string
  /** The service that it was read from. */
  baseUrl: string
  workspace: string
  testMode: boolean
  filters: Readonly<Record<string, string>>
  /** Columns of this resource: `excluded` are missing; `hashed` do not have the service's values. */
  excluded: readonly string[]
  hashed: readonly string[]
  /** Fingerprint of the key that values are hashed with; '' if none are. */
  hashedWith: string
  /** Formatted for a person in Excel, not for programs. */
  forExcel: boolean
  mode: 'full' | 'incremental' | 'byId'
  /** Whether `maxPages` ended the read before the end of the list. */
  capped: boolean
  verdict: 'proven' | 'unproven'
  /** When the run that read it was started (ISO 8601), by Temporal's clock: the read began later. */
  startedAt: string
  completeThrough: string | null
  /** Everything changed up to this moment is in the destination (ms since 1970, by the service's clock). */
  changesThrough: number | null
  /** The claims of our own changes that were settled before a read of the whole list: see `ListResource.unmoved`. */
  seenClaims: number
  /** The fields that the schema lacks, and those of the schema that no record had; absent if there were no records. */
  unknownFields?: readonly string[]
  absentFields?: readonly string[]
  /** Path or address of the manifest; absent for documents in a warehouse. */
  manifest?: string
}

/** Identifies the exports that continue one another. */
export type Series = Pick<
  Publication,
  | 'workspace'
  | 'testMode'
  | 'resource'
  | 'destination'
  | 'location'
  | 'baseUrl'
  | 'filters'
  | 'excluded'
  | 'hashed'
  | 'hashedWith'
  | 'forExcel'
>

/** How far the incremental exports of a series have come. */
export interface Watermark {
  /** Everything up to this time has been published; ms since 1970, by the service's clock. */
  at: number
  seenClaims: number
}

/** What was published, where: freshness, watermarks and what is still needed follow from it. */
export type Publications = ReturnType<typeof createPublications>

/** Where to look what was published. */
export interface PublishedState {
  publications: Pick<Publications, 'all'>
}

/** @param folder the data folder, to which the paths of manifests are relative: it may be moved */
export function createPublications({ db }: Pick<Store, 'db'>, folder: string) {
  const toBody = ({ manifest, ...publication }: Publication) =>
    JSON.stringify({
      ...publication,
      ...(manifest !== undefined && {
        manifest: isAddress(manifest) ? manifest : relative(folder, manifest),
      }),
    })
  const toPublication = (row: { body: string; changesThrough: number | null }): Publication => {
    const { manifest, ...publication } = JSON.parse(row.body) as Publication
    return {
      ...publication,
      changesThrough: row.changesThrough,
      ...(manifest !== undefined && { manifest: isAddress(manifest) ? manifest : resolve(folder, manifest) }),
    }
  }
  const published = () => db.selectFrom('publications').select(['body', 'changesThrough'])

  return {
    /** Records a publication. Published again, it keeps the changes that it brought before. */
    async add(publication: Publication): Promise<void> {
      const { run, resource, destination, place = '', location, mode, changesThrough } = publication
      const row = {
        run,
        resource,
        destination,
        place,
        location,
        mode,
        changesThrough,
        testMode: Number(publication.testMode),
        startedAt: Date.parse(publication.startedAt),
        series: toSeries(publication),
        body: toBody(publication),
      }
      await db
        .insertInto('publications')
        .values(row)
        .onConflict((conflict) =>
          conflict.columns(['run', 'resource', 'destination', 'place', 'location']).doUpdateSet((eb) => ({
            ...row,
            changesThrough: eb.fn.coalesce(
              eb.ref('excluded.changesThrough'),
              eb.ref('publications.changesThrough'),
            ),
          })),
        )
        .execute()
    },
    /** All of them, or those of one run, in the order in which their runs were started. */
    async all({ run, testMode }: { run?: string; testMode?: boolean } = {}): Promise<Publication[]> {
      const rows = await published()
        .$if(run !== undefined, (query) => query.where('run', '=', run ?? ''))
        .$if(testMode !== undefined, (query) => query.where('testMode', '=', Number(testMode)))
        .orderBy('startedAt')
        .orderBy('run')
        .execute()
      return rows.map(toPublication)
    },
    /** Undefined if no proven export says what the destination has. */
    async watermark(series: Series): Promise<Watermark | undefined> {
      const proven = published()
        .where('series', '=', toSeries(series))
        .where('changesThrough', 'is not', null)
        .orderBy('startedAt', 'desc')
        .limit(1)
      const newest = await proven
        .clearOrderBy()
        .orderBy('changesThrough', 'desc')
        .orderBy('startedAt', 'desc')
        .executeTakeFirst()
      if (newest === undefined) return undefined
      const whole = await proven.where('mode', '=', 'full').executeTakeFirst()
      const seenClaims = whole === undefined ? 0 : toPublication(whole).seenClaims
      return { at: newest.changesThrough ?? 0, seenClaims }
    },
    /** Forgets the watermarks of a resource, by a person: the next incremental read is a whole one. */
    async forgetChanges({
      resource,
      destination,
    }: {
      resource: string
      destination: string | undefined
    }): Promise<void> {
      await db
        .updateTable('publications')
        .set({ changesThrough: null })
        .where('resource', '=', resource)
        .$if(destination !== undefined, (query) => query.where('destination', '=', destination ?? ''))
        .execute()
    },
  }
}

const toSeries = (of: Series): string =>
  JSON.stringify([
    of.workspace,
    of.testMode,
    of.resource,
    of.destination,
    of.location,
    of.baseUrl,
    of.forExcel,
    Object.entries(of.filters).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    of.excluded.toSorted(),
    of.hashed.toSorted(),
    of.hashedWith,
  ])

/** Whether a manifest is in a bucket rather than in a folder. */
export const isAddress = (manifest: string): boolean => manifest.startsWith('s3://')
