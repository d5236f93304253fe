import { dirname, join } from 'node:path'
import type { DestinationName } from '../destinations/names.ts'
import { type NextStep, pageName } from '../runs/view/view.ts'
import type { ExportPlan } from './plan.ts'

type Resource = ExportPlan['resources'][number]

/** One resource in one destination, as it was published. */
export interface PublishedExport {
  resource: Resource
  destination: DestinationName
  verdict: 'proven' | 'unproven'
  reasons: string[]
  records: number
  mode: 'full' | 'incremental' | 'byId'
  /** The moment up to which every record is there; null where that is not proven. */
  completeThrough: string | null
  /** Whether `maxPages` ended the read before the list. */
  capped: boolean
  /** Records that a warehouse did not have, and records that have changed there; null for files. */
  new: number | null
  changed: number | null
  /** Records marked as deleted; null where the destination marks none, or the read could not tell. */
  deleted: number | null
  /** Deletes that are not marked until a person allows them. */
  heldBack: number
  /** For people: a folder, a file or a schema. */
  where: string
  /** The manifest's file; empty where the destination keeps none (a warehouse). */
  manifest: string
  /** For a person to decide: deletes that were held back. */
  warnings: string[]
  /** Of a fetch by id: the ids that do not exist, the first of them by name. */
  missing?: { count: number; first: string[] }
}

/** A destination that a read could not be published to. */
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
      /** Destinations that a stop kept from being published; `publish` does it later, from the retained parts. */
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
  /** What a person does next. */
  next?: NextStep[]
  /** The page that shows this report. */
  page?: string
  /** Of a fetch by id: the ids that do not exist; `file` has them all. */
  missing?: { count: number; first: string[]; file: string }
}

export const publishedOf = (result: ResourceResult) => ('published' in result ? result.published : [])

/** The verdict of a run, and a sentence that gives its reason. */
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

/** Five ids are enough to see what is wrong with a list; the file has the others. */
function toMissing(resource: Resource, { count, first }: { count: number; first: string[] }): string[] {
  if (count === 0) return []
  const named = first.slice(0, 5).join(', ')
  return [`${count} ${resource} do not exist: ${named}${count > 5 ? ', ...' : ''}`]
}

/** A sentence for each part of a resource that failed. */
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

/** The report of an export for programs: one shape for every destination, whatever happened to it. */
export interface ExportDocument {
  version: 1
  run: string
  verdict: ExportReport['verdict']
  summary: string
  /** The page of the run. */
  report: string | null
  exports: ExportedItem[]
  next: NextStep[]
  missing?: ExportReport['missing']
}

interface ExportedItem {
  resource: Resource
  /** Null where nothing was published: it was stopped, or failed, before. */
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
  report: string | null
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
    report: null,
  })
  if ('error' in result) return [without('failed', null, [result.error])]
  if ('stopped' in result) return [without('stopped', null, [])]
  return [
    ...result.published.map((published): ExportedItem => {
      const { missing: _missing, capped: _capped, heldBack: _heldBack, ...item } = published
      const manifest = item.manifest === '' ? null : item.manifest
      const folder = manifest === null ? null : dirname(manifest)
      return { ...item, folder, manifest, report: folder === null ? null : join(folder, pageName) }
    }),
    ...(result.failed ?? []).map(({ destination, error }) => without('failed', destination, [error])),
    ...(result.unpublished ?? []).map((destination) => without('stopped', destination, [])),
  ]
}
