import { dirname, join } from 'node:path'
import type { ResourceName } from '../billing/resources/lists.ts'
import type { Manifest, Reference } from '../destinations/manifest.ts'
import type { DestinationName } from '../destinations/names.ts'
import type { Identity } from '../runs/identity.ts'
import { formatCountOf } from '../runs/view/format.ts'
import type { NextStep } from '../runs/view/view.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { toFileName } from '../storage/file-name.ts'
import type { Sheet } from './sheet.ts'

/** One resource as published in one destination. */
export interface PublishedExport extends Pick<
  Manifest,
  'destination' | 'verdict' | 'reasons' | 'mode' | 'scope' | 'completeThrough' | 'records' | 'capped'
> {
  resource: ResourceName
  /** Things to check despite the verdict, one sentence each: deletes that were held back, changed fields. */
  warnings: string[]
  /** The number of records that were new to a warehouse (`new`) or had changed there (`changed`); null for files. */
  new: number | null
  changed: number | null
  /**
   * The number of records marked as deleted; null where the destination marks none or the read could not detect
   * deletes.
   */
  deleted: number | null
  /** The number of deletes that are not marked until a person allows them. */
  heldBack: number
  /** A folder, an address, a file or a schema, for display. */
  where: string
  /** Path of the manifest; of a warehouse that beside its certificate, null for documents. */
  manifest: string | null
  /** Set for a fetch: the ids that do not exist. `file` lists all of them; null for a warehouse. */
  missing?: { count: number; first: string[]; file: string | null }
}

/** A resource that is not published, in one destination or, where the read had no end, in any. */
export interface NotPublished {
  resource: ResourceName
  destination: DestinationName | null
  verdict: 'stopped' | 'failed'
  /** The error of a failure. What was stopped can be published later from the kept parts, if it was read. */
  reasons: string[]
}

/** The outcome of one resource in one destination. */
export type ExportedItem = PublishedExport | NotPublished

export interface ExportReport {
  /** One sentence; the first thing the Temporal UI shows of a result. */
  summary: string
  run: string
  verdict: ExportedItem['verdict']
  exports: ExportedItem[]
  startedAt?: string
  identity?: Identity
  /** Whether the records that others name are in the run's exports. */
  references?: Reference[]
  /** The next steps for a person. */
  next?: NextStep[]
  /** Path of the report's HTML page. */
  page?: string
  /** The address of the store that has a copy of this report. */
  files?: string
  /** Of a publication in files, if there is one. */
  missing?: PublishedExport['missing']
}

/** What the report says of a publication. */
export function toPublished(resource: ResourceName, sheet: Omit<Sheet, 'tables' | 'files'>): PublishedExport {
  const { destination, verdict, reasons, warnings = [], mode, scope, completeThrough, records } = sheet
  const { capped, changes, deletes, missing, location, manifestPath } = sheet
  const [file] = missing?.files ?? []
  const all = file && manifestPath && `${dirname(manifestPath)}/${file.path}`
  return {
    resource,
    destination,
    verdict,
    reasons,
    warnings,
    mode,
    scope,
    completeThrough,
    records,
    capped,
    new: changes?.new ?? null,
    changed: changes?.changed ?? null,
    deleted: deletes?.marked ?? null,
    // Nobody can allow those in doubt: the next read without the doubt marks them.
    heldBack: deletes?.doubt === undefined ? (deletes?.heldBack ?? 0) : 0,
    where: location,
    manifest: manifestPath ?? null,
    ...(missing !== undefined && {
      missing: { count: missing.rows, first: missing.first, file: all ?? null },
    }),
  }
}

export const isPublished = (item: ExportedItem): item is PublishedExport =>
  item.verdict === 'proven' || item.verdict === 'unproven'

/** Builds the report of a run: its verdict, with a summary sentence that gives the reason. */
export function toReport(run: string, exports: ExportedItem[]): ExportReport {
  const of = (verdict: ExportedItem['verdict']) => exports.filter((one) => one.verdict === verdict)
  const name = ({ resource, destination }: ExportedItem) =>
    destination === null ? resource : `${resource} to ${destination}`
  const published = exports.filter(isPublished)
  const records = new Map(published.map((one) => [one.resource, one.records]))
  const total = [...records.values()].reduce((sum, count) => sum + count, 0)
  const [missing] = published
    .flatMap((one) => one.missing ?? [])
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => Number(a.file === null) - Number(b.file === null))
  const { complete, lists } = countLists(exports)
  const parts = [
    `${complete} of ${lists}${lists === 1 ? '' : ' lists'} proven complete, ${formatCountOf(total, 'records')}`,
    ...(missing ? [toMissing(published[0]!.resource, missing)] : []),
    ...of('unproven').map(({ resource, reasons }) => `${resource} unproven: ${reasons.join(' ')}`),
    ...of('stopped').map((one) => `${name(one)} stopped`),
    ...of('failed').map((one) => `${name(one)} failed: ${one.reasons.join(' ')}`),
  ]
  const worst = (['failed', 'stopped', 'unproven'] as const).find((verdict) => of(verdict).length > 0)
  const summary = parts.join('; ')
  return { summary, run, verdict: worst ?? 'proven', exports, ...(missing && { missing }) }
}

/** How many lists there are, and how many are proven complete in every destination. */
export function countLists(exports: readonly ExportedItem[]): { lists: number; complete: number } {
  const lists = Map.groupBy(exports, ({ resource }) => resource)
  const complete = Array.from(lists.values()).filter((items) =>
    items.every(({ verdict }) => verdict === 'proven'),
  )
  return { lists: lists.size, complete: complete.length }
}

/** Lists the first five missing ids, enough to see what is wrong; the file has the rest. */
const toMissing = (resource: ResourceName, { count, first }: { count: number; first: string[] }): string =>
  `${count} ${resource} do not exist: ${first.slice(0, 5).join(', ')}${count > 5 ? ', ...' : ''}`

/** The report of an export for programs: every item has all fields, null where nothing was published. */
export function toDocument(report: ExportReport) {
  const { run, verdict, summary, page = null, references = [], next = [], missing } = report
  const exports = report.exports.map((item) => {
    const { missing: _missing, ...fields } = withAllFields(item)
    return { ...fields, folder: fields.manifest === null ? null : dirname(fields.manifest) }
  })
  return {
    version: 1,
    run,
    verdict,
    summary,
    report: page,
    exports,
    references,
    next,
    ...(missing && { missing }),
  }
}

export type ExportDocument = ReturnType<typeof toDocument>

/** An item with all fields, null where nothing was published. */
export const withAllFields = (item: ExportedItem) => ({
  warnings: [],
  mode: null,
  scope: [],
  completeThrough: null,
  records: null,
  capped: false,
  new: null,
  changed: null,
  deleted: null,
  heldBack: 0,
  where: null,
  manifest: null,
  missing: undefined,
  ...item,
})

export const reportsFolder = (dataDir: string) => join(dataDir, 'exports', 'reports')

type Ending = '.json' | '.html'

/** The path of an export's report, which outlives the parts of its run. */
export const reportFile = (of: { dataDir: string; run: string; ending: Ending }): string =>
  join(reportsFolder(of.dataDir), `${toFileName(of.run)}${of.ending}`)

/** The folder names of all runs that have a report. */
export async function foldersReported(of: {
  dataDir: string
  shared: SharedFolder
}): Promise<ReadonlySet<string>> {
  const names = await of.shared.list(reportsFolder(of.dataDir))
  return new Set(names.flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : [])))
}
