import type { Selectable } from 'kysely'
import { relative, resolve } from 'node:path'
import type { Store } from './store.ts'
import type { PublicationTable } from './schema.ts'

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
  /** As the export asked for it: `excluded` columns are missing; `hashed` columns do not have the service's values. */
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
  /** Path or address of the manifest; absent where the destination keeps none (a warehouse). */
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
  /** The proven run that brought it here. */
  run: string
  seenClaims: number
}

/** What was published, where: freshness, watermarks and what is still needed follow from it. */
export interface Publications {
  /** Records a publication. Published again, it keeps the changes that it brought before. */
  add(publication: Publication): Promise<void>
  /** All of them, or those of one run, in the order in which their runs were started. */
  all(of?: { run?: string; testMode?: boolean }): Promise<Publication[]>
  /** Undefined if no proven export says what the destination has. */
  watermark(series: Series): Promise<Watermark | undefined>
  /** Forgets the watermarks of a resource, by a person: the next incremental read is a whole one. */
  forgetChanges(of: { resource: string; destination: string | undefined }): Promise<void>
}

/** Where to look what was published. */
export interface PublishedState {
  publications: Pick<Publications, 'all'>
}

/** @param folder the data folder, to which the paths of manifests are relative: it may be moved */
export function createPublications({ db }: Pick<Store, 'db'>, folder: string): Publications {
  return {
    async add(publication) {
      const row = toRow(publication, folder)
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
    async all({ run, testMode } = {}) {
      const rows = await db
        .selectFrom('publications')
        .selectAll()
        .$if(run !== undefined, (query) => query.where('run', '=', run ?? ''))
        .$if(testMode !== undefined, (query) => query.where('testMode', '=', Number(testMode)))
        .orderBy('startedAt')
        .orderBy('run')
        .execute()
      return rows.map((row) => toPublication(row, folder))
    },
    async watermark(series) {
      const { resource, destination, location, baseUrl, ...view } = toSeries(series)
      const rows = await db
        .selectFrom('publications')
        .select(['run', 'mode', 'startedAt', 'changesThrough', 'seenClaims'])
        .where('resource', '=', resource)
        .where('destination', '=', destination)
        .where('location', '=', location)
        .where('baseUrl', '=', baseUrl)
        .where('workspace', '=', view.workspace)
        .where('testMode', '=', view.testMode)
        .where('filters', '=', view.filters)
        .where('privacy', '=', view.privacy)
        .where('forExcel', '=', view.forExcel)
        .where('changesThrough', 'is not', null)
        .orderBy('changesThrough', 'desc')
        .orderBy('startedAt', 'desc')
        .execute()
      const [newest] = rows
      if (newest === undefined) return undefined
      const whole = rows.filter(({ mode }) => mode === 'full').toSorted((a, b) => b.startedAt - a.startedAt)
      return { at: newest.changesThrough ?? 0, run: newest.run, seenClaims: whole[0]?.seenClaims ?? 0 }
    },
    async forgetChanges({ resource, destination }) {
      await db
        .updateTable('publications')
        .set({ changesThrough: null })
        .where('resource', '=', resource)
        .$if(destination !== undefined, (query) => query.where('destination', '=', destination ?? ''))
        .execute()
    },
  }
}

function toSeries(of: Series) {
  return {
    resource: of.resource,
    destination: of.destination,
    location: of.location,
    baseUrl: of.baseUrl,
    workspace: of.workspace,
    testMode: Number(of.testMode),
    filters: JSON.stringify(Object.entries(of.filters).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    privacy: JSON.stringify([of.excluded.toSorted(), of.hashed.toSorted(), of.hashedWith]),
    forExcel: Number(of.forExcel),
  }
}

function toRow(of: Publication, folder: string): Selectable<PublicationTable> {
  const { manifest, unknownFields = null, absentFields = null } = of
  return {
    ...toSeries(of),
    run: of.run,
    place: of.place ?? '',
    mode: of.mode,
    capped: Number(of.capped),
    verdict: of.verdict,
    startedAt: Date.parse(of.startedAt),
    completeThrough: of.completeThrough,
    changesThrough: of.changesThrough,
    seenClaims: of.seenClaims,
    fields: absentFields && JSON.stringify([unknownFields, absentFields]),
    manifest: manifest === undefined || isAddress(manifest) ? (manifest ?? null) : relative(folder, manifest),
  }
}

function toPublication(row: Selectable<PublicationTable>, folder: string): Publication {
  const { place, fields, manifest } = row
  const [excluded, hashed, hashedWith] = JSON.parse(row.privacy) as [string[], string[], string]
  const [unknownFields, absentFields] = JSON.parse(fields ?? '[]') as string[][]
  return {
    run: row.run,
    resource: row.resource,
    destination: row.destination,
    ...(place !== '' && { place }),
    location: row.location,
    baseUrl: row.baseUrl,
    workspace: row.workspace,
    testMode: row.testMode === 1,
    filters: Object.fromEntries(JSON.parse(row.filters) as [string, string][]),
    excluded,
    hashed,
    hashedWith,
    forExcel: row.forExcel === 1,
    mode: row.mode,
    capped: row.capped === 1,
    verdict: row.verdict,
    startedAt: new Date(row.startedAt).toISOString(),
    completeThrough: row.completeThrough,
    changesThrough: row.changesThrough,
    seenClaims: row.seenClaims,
    ...(absentFields && { unknownFields: unknownFields ?? [], absentFields }),
    ...(manifest !== null && { manifest: isAddress(manifest) ? manifest : resolve(folder, manifest) }),
  }
}

/** Whether a manifest is in a bucket rather than in a folder. */
export const isAddress = (manifest: string): boolean => manifest.startsWith('s3://')
