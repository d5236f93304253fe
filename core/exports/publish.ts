import { join } from 'node:path'
import { isDocumentName } from '../billing/resources/lists.ts'
import type { Destination, Publication } from '../destinations/destination.ts'
import type { Manifest } from '../destinations/manifest/manifest.ts'
import { isFileDestination, type DestinationName } from '../destinations/names.ts'
import type { ReadOutcome } from '../reading/outcome.ts'
import { InvalidInput } from '../runs/errors.ts'
import type { FileStore } from '../storage/file-store.ts'
import type { SharedFolder } from '../storage/cached.ts'
import type { State } from '../state/open.ts'
import type { Publications } from '../state/publications.ts'
import { loadCheckpoint, outcomeOf, type Checkpoint } from './parts/checkpoint.ts'
import { fetchParts } from './parts/fetch-parts.ts'
import { isOfTable, missingPart, rejectedPart } from './parts/part-names.ts'
import { markPublished } from './parts/publish-record.ts'
import { layoutOfRead, partsFolder } from './parts/read-folder.ts'
import { storeOf, type ExportPlan } from './plan.ts'
import { isWhole, notePublished, type PublishedNote, readPublished } from './publication-log.ts'
import { privacyOf } from './privacy-fingerprint.ts'
import { isOfIds, toFacts } from './read-facts.ts'
import type { PublishedExport } from './report.ts'
import { moveWatermark, placeOf } from './watermark.ts'

interface PublishDeps {
  dataDir: string
  shared: SharedFolder
  publications?: Publications | undefined
  hashKey: string
  state: Pick<State, 'watermarks'>
  destinations: ReadonlyMap<string, Destination>
  files?: FileStore | undefined
  /** Component versions, recorded in the manifest. */
  versions: Readonly<Record<string, string>>
}

interface Read {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  destination: DestinationName
}

/**
 * Makes a finished read visible in one destination, atomically, then advances the watermark and records the
 * publication in the log and beside the parts. Safe to repeat.
 *
 * @throws {InvalidInput} the worker has no such destination, or `checkpoint` is not a valid checkpoint name
 * @throws {PartsDamagedError} the parts or their notes are missing or unreadable
 */
export async function publishRead(
  options: Read & {
    deps: PublishDeps
    /** The checkpoint that Temporal accepted: only its parts are published. */
    checkpoint: string
    signal: AbortSignal
  },
): Promise<{ published: PublishedExport; note: PublishedNote }> {
  const { deps, plan, resource, destination, signal } = options
  const { dataDir, shared, publications } = deps
  const to = deps.destinations.get(destination)
  if (to === undefined) throw new InvalidInput(`This worker has no destination ${destination}.`)
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  const checkpoint = await loadCheckpoint({ shared, folder, name: options.checkpoint })
  const store = isFileDestination(destination) ? storeOf(deps, plan) : undefined
  const layout = await layoutOfRead({ shared, folder })
  await fetchParts({ dataDir, shared, parts: checkpoint.parts, signal })
  const read = toPublication({ deps, plan, resource, checkpoint, layout })
  const publication = { ...read, facts: await withChangedFields(deps, plan.exclude, read) }
  const done = await to.publish({ ...publication, ...(store !== undefined && { store }), signal })
  const { manifest, manifestPath, location, page } = done
  if (!isDocumentName(resource)) {
    const outcome = outcomeOf(checkpoint) as ReadOutcome
    const { hashedWith } = layout
    await moveWatermark({ deps, plan, resource, destination, read: outcome, hashedWith, published: done })
  }
  const note = toNote({ plan, manifest, manifestPath, begunAt: layout.begunAt })
  await notePublished({ dataDir, publications, published: note })
  await markPublished({ shared, folder }, { destination, asked: plan.to })
  const { verdict, reasons, records, mode, completeThrough, deletes, missing, warnings = [] } = manifest
  const published = {
    resource,
    destination,
    verdict,
    reasons,
    records,
    mode,
    completeThrough,
    capped: manifest.capped,
    new: manifest.changes?.new ?? null,
    changed: manifest.changes?.changed ?? null,
    deleted: deletes?.marked ?? null,
    heldBack: deletes?.heldBack ?? 0,
    where: location,
    manifest: manifestPath ?? '',
    ...(page !== undefined && { page }),
    warnings,
    ...(missing !== undefined && { missing: { count: missing.rows, first: missing.first } }),
  }
  return { published, note }
}

/** Compares the fields of a read with those of earlier exports: which are new, and which the service no longer sends. */
async function withChangedFields(
  { dataDir, publications }: PublishDeps,
  excluded: readonly string[],
  { facts, resource, workspace, testMode, run, ...read }: Publication,
): Promise<Publication['facts']> {
  const { absentFields, unknownFields } = facts
  const unknown = Object.keys(unknownFields)
  if (absentFields.length + unknown.length === 0) return facts
  const earlier = (await readPublished({ dataDir, publications, testMode })).filter(
    (one) => one.resource === resource && one.workspace === workspace && one.run !== run,
  )
  const newFields = unknown.filter((field) => !earlier.some((one) => one.unknownFields?.includes(field)))
  const comparable = earlier.filter(
    // What was excluded there was not looked for.
    (one) => isWhole(one) && one.excluded.every((column) => excluded.includes(column)),
  )
  // The few records that an incremental read brings may all lack a field that others have.
  const vanishedFields =
    read.mode === 'full' && isWhole({ ...read, forExcel: false })
      ? absentFields.filter((field) => comparable.some((one) => one.absentFields?.includes(field) === false))
      : []
  return {
    ...facts,
    ...(newFields.length > 0 && { newFields }),
    ...(vanishedFields.length > 0 && { vanishedFields }),
  }
}

function toNote(of: {
  plan: ExportPlan
  manifest: Manifest
  manifestPath: string | undefined
  begunAt: string
}): PublishedNote {
  const { plan, manifest, manifestPath, begunAt } = of
  const { resource, destination, run, workspace, testMode, verdict } = manifest
  const { mode, filters, capped, publishedAt, absentFields, unknownFields } = manifest
  const place = placeOf(plan, destination)
  const what = { resource, destination, run, workspace, testMode, verdict, mode, filters, capped }
  return {
    ...what,
    // As they were asked for, because a schedule asks for the same.
    excluded: plan.exclude,
    hashed: plan.hash,
    // The Excel format applies to files only; warehouses in the same run get the usual values.
    forExcel: plan.forExcel && destination === 'csv',
    startedAt: begunAt,
    publishedAt,
    ...(manifest.records > 0 && { absentFields, unknownFields: Object.keys(unknownFields) }),
    ...(place !== undefined && { place }),
    ...(manifestPath !== undefined && { manifest: manifestPath }),
  }
}

function toPublication(
  options: Omit<Read, 'destination'> & {
    deps: Pick<PublishDeps, 'dataDir' | 'versions'>
    checkpoint: Checkpoint
    layout: Awaited<ReturnType<typeof layoutOfRead>>
  },
): Publication {
  const { deps, plan, resource, checkpoint, layout } = options
  const { tables, hashedWith } = layout
  const { parts } = checkpoint
  const outcome = outcomeOf(checkpoint)
  const named = (name: string) => parts.filter(({ table }) => table === name)
  const mode = plan.since[resource] === undefined ? 'full' : 'incremental'
  return {
    run: plan.run,
    workspace: plan.identity.workspace,
    baseUrl: plan.identity.baseUrl,
    testMode: plan.identity.mode === 'test',
    mode: isOfIds(outcome) ? 'byId' : mode,
    filters: plan.filters,
    capped: !isOfIds(outcome) && outcome.capped,
    ...privacyOf({ plan, resource, hashedWith }),
    tables,
    parts: parts.filter(isOfTable),
    rejected: named(rejectedPart),
    ...(isOfIds(outcome) && { missing: { parts: named(missingPart), first: outcome.missing.first } }),
    facts: toFacts({ plan, resource, checkpoint }),
    versions: deps.versions,
    folder: plan.out ?? join(deps.dataDir, 'exports'),
    forExcel: plan.forExcel,
    ...(plan.schema !== undefined && { schema: plan.schema }),
    ...(plan.maxDeletes !== undefined && { maxDeletes: plan.maxDeletes }),
  }
}
