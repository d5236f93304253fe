import { dirname, join } from 'node:path'
import type { DestinationName } from '../destinations/names.ts'
import type { NextStep } from '../runs/view/view.ts'
import type { ExportPlan } from './plan.ts'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'

type Resource = ExportPlan['resources'][number]

/** One resource as published in one destination. */
export interface PublishedExport {
  resource: Resource
  destination: DestinationName
  verdict: 'proven' | 'unproven'
  reasons: string[]
  records: number
  mode: 'full' | 'incremental' | 'byId'
  /** The time up to which the export is proven complete (ISO 8601); null where it is not proven. */
  completeThrough: string | null
  /** Whether `maxPages` ended the read before the end of the list. */
  capped: boolean
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
  /** Path of the manifest; empty where the destination keeps none (a warehouse). */
  manifest: string
  /** What a person has to decide: deletes that were held back. */
  warnings: string[]
  /** Set for a fetch: the ids that do not exist, with the first few listed. */
  missing?: { count: number; first: string[] }
}

/** A destination to which a read could not be published. */
export interface PublishFailure {
  destination: DestinationName
  error: string
}

/** The result of one resource of a run. */
export type ResourceResult =
  | {
      resource: Resource
      published: PublishedExport[]
      failed?: PublishFailure[]
      /** Destinations not published because the run was stopped; `publish` can do it later from the kept parts. */
      unpublished?: DestinationName[]
    }
  | { resource: Resource; stopped: true }
  | { resource: Resource; error: string }

export interface ExportReport {
  /** One sentence; the first thing the Temporal UI shows of a result. */
  summary: string
  run: string
  verdict: 'proven' | 'unproven' | 'stopped' | 'failed'
  exports: ResourceResult[]
  startedAt?: string
  identity?: ExportPlan['identity']
  /** What a person can do next. */
  next?: NextStep[]
  /** Path of the report's HTML page. */
  page?: string
  /** The address of the store that has a copy of this report. */
  files?: string
  /** Set for a fetch: the ids that do not exist. `file` lists all of them. */
  missing?: { count: number; first: string[]; file: string }
}

export const publishedOf = (result: ResourceResult) => ('published' in result ? result.published : [])

/** Builds the report of a run: its verdict, with a summary sentence that gives the reason. */
export function toReport(run: string, results: ResourceResult[]): ExportReport {
  const published = results.flatMap(publishedOf)
  const failed = results.flatMap(failuresOf)
  const stopped = results.flatMap((result) =>
    'stopped' in result ? [result.resource] : unpublishedOf(result),
  )
  const unproven = published.filter(({ verdict }) => verdict === 'unproven')
  const proven = published.length - unproven.length
  const records = new Map(
    results.map((result) => [
      result.resource,
      'published' in result ? (result.published[0]?.records ?? 0) : 0,
    ]),
  )
  const total = [...records.values()].reduce((sum, count) => sum + count, 0)
  const parts = [
    `${proven} of ${published.length + failed.length + stopped.length} proven complete, ${total} records`,
    ...published.flatMap(({ resource, missing }, at) =>
      at === 0 && missing ? toMissing(resource, missing) : [],
    ),
    ...unproven.map(({ resource, reasons }) => `${resource} unproven: ${reasons.join(' ')}`),
    ...stopped.map((name) => `${name} stopped`),
    ...failed,
  ]
  const verdict =
    failed.length > 0
      ? 'failed'
      : stopped.length > 0
        ? 'stopped'
        : unproven.length > 0
          ? 'unproven'
          : 'proven'
  return { summary: parts.join('; '), run, verdict, exports: results }
}

/** Lists the first five missing ids, enough to see what is wrong; the file has the rest. */
function toMissing(resource: Resource, { count, first }: { count: number; first: string[] }): string[] {
  if (count === 0) return []
  const named = first.slice(0, 5).join(', ')
  return [`${count} ${resource} do not exist: ${named}${count > 5 ? ', ...' : ''}`]
}

/** One sentence for each failure of a resource. */
function failuresOf(result: ResourceResult): string[] {
  if ('error' in result) return [`${result.resource} failed: ${result.error}`]
  if ('stopped' in result) return []
  return (result.failed ?? []).map(
    ({ destination, error }) => `${result.resource} to ${destination} failed: ${error}`,
  )
}

const unpublishedOf = (result: ResourceResult) =>
  'published' in result
    ? (result.unpublished ?? []).map((destination) => `${result.resource} to ${destination}`)
    : []

/** The report of an export for programs: the same shape for every destination and outcome. */
export interface ExportDocument {
  version: 1
  run: string
  verdict: ExportReport['verdict']
  summary: string
  /** Path of the run's HTML page. */
  report: string | null
  exports: ExportedItem[]
  next: NextStep[]
  missing?: ExportReport['missing']
}

interface ExportedItem {
  resource: Resource
  /** Null where nothing was published because the run was stopped or failed first. */
  destination: DestinationName | null
  verdict: ExportReport['verdict']
  mode: PublishedExport['mode'] | null
  reasons: string[]
  warnings: string[]
  records: number | null
  new: number | null
  changed: number | null
  deleted: number | null
  completeThrough: string | null
  /** A folder, a file or a schema. */
  where: string | null
  folder: string | null
  manifest: string | null
}

export function toDocument(report: ExportReport): ExportDocument {
  const { run, verdict, summary, page: path = null, next = [], missing } = report
  const exports = report.exports.flatMap(toItems)
  return { version: 1, run, verdict, summary, report: path, exports, next, ...(missing && { missing }) }
}

function toItems(result: ResourceResult): ExportedItem[] {
  const { resource } = result
  const without = (
    verdict: 'failed' | 'stopped',
    destination: DestinationName | null,
    reasons: string[],
  ): ExportedItem => ({
    resource,
    destination,
    verdict,
    mode: null,
    reasons,
    warnings: [],
    records: null,
    new: null,
    changed: null,
    deleted: null,
    completeThrough: null,
    where: null,
    folder: null,
    manifest: null,
  })
  if ('error' in result) return [without('failed', null, [result.error])]
  if ('stopped' in result) return [without('stopped', null, [])]
  return [
    ...result.published.map((published): ExportedItem => {
      const { missing: _missing, capped: _capped, heldBack: _heldBack, ...item } = published
      const manifest = item.manifest === '' ? null : item.manifest
      const folder = manifest === null ? null : dirname(manifest)
      return { ...item, folder, manifest }
    }),
    ...(result.failed ?? []).map(({ destination, error }) => without('failed', destination, [error])),
    ...(result.unpublished ?? []).map((destination) => without('stopped', destination, [])),
  ]
}

const folderOf = (dataDir: string) => join(dataDir, 'exports', 'reports')

type Ending = '.json' | '.html' | '.missing.csv'

/** The path of an export's report, which outlives the parts of its run. */
export const reportFile = (of: { dataDir: string; run: string; ending: Ending }): string =>
  join(folderOf(of.dataDir), `${toFileName(of.run)}${of.ending}`)

/** The folder names of all runs that have a report. */
export async function foldersReported(of: {
  dataDir: string
  shared: SharedFolder
}): Promise<ReadonlySet<string>> {
  const names = await of.shared.list(folderOf(of.dataDir))
  return new Set(names.flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : [])))
}
