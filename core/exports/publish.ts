import { join } from 'node:path'
import type { ReadFacts } from '../destinations/manifest.ts'
import type { Destination, Publication, Published } from '../destinations/destination.ts'
import { keepCertificate } from '../destinations/warehouse/certificate.ts'
import { isFileDestination, type DestinationName } from '../destinations/names.ts'
import type { IdOutcome } from '../reading/read-by-id.ts'
import { InvalidInput } from '../runs/errors.ts'
import { createRunNotes } from '../runs/run-notes.ts'
import type { FileStore } from '../storage/file-store.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { judgeTotals } from '../tables/totals.ts'
import type { State } from '../state/open.ts'
import type { Publication as PublicationRow, Series } from '../state/publications.ts'
import { type AnyOutcome, type Checkpoint, loadCheckpoint, outcomeOf } from './parts/checkpoint.ts'
import { certificatePart, fetchParts, isOfTable, missingPart, rejectedPart } from './parts/chunks.ts'
import { knownReadPlan, partsFolder, type ReadPlan } from './parts/read-plan.ts'
import { begunAtOf, type ExportPlan, privacyOf, storeOf } from './plan.ts'
import { isWhole } from './proven.ts'
import { notedReferences } from './references.ts'
import { type Sheet, toSheet } from './sheet.ts'
import { changesThrough, placeOf, seriesOf } from './watermark.ts'

interface PublishDeps {
  dataDir: string
  shared: SharedFolder
  state: Pick<State, 'publications' | 'notes'>
  destinations: ReadonlyMap<string, Destination>
  files?: FileStore | undefined
  /** Component versions, recorded in the manifest. */
  versions: Readonly<Record<string, string>>
}

interface Read {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
}

/**
 * Makes a finished read visible in one destination, atomically, then records the publication. Safe to repeat.
 *
 * @throws {InvalidInput} the worker has no such destination, or `checkpoint` is not a valid checkpoint name
 * @throws {PartsDamagedError} the parts or their notes are missing or unreadable
 */
export async function publishRead(
  options: Read & {
    deps: PublishDeps
    destination: DestinationName
    /** The checkpoint that Temporal accepted: only its parts are published. */
    checkpoint: string
    signal: AbortSignal
  },
): Promise<{ row: PublicationRow; sheet: Sheet }> {
  const { deps, plan, resource, destination, signal } = options
  const { dataDir, shared } = deps
  const to = deps.destinations.get(destination)
  if (to === undefined) throw new InvalidInput(`This worker has no destination ${destination}.`)
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  const checkpoint = await loadCheckpoint({ shared, folder, name: options.checkpoint })
  const store = storeOf(deps, plan)
  const layout = await knownReadPlan({ shared, folder })
  await fetchParts({ shared, parts: checkpoint.parts, signal })
  const read = toPublication({ deps, plan, resource, checkpoint, layout })
  const facts = await withChangedFields(deps, plan.exclude, read)
  const notes = createRunNotes(deps.state)
  const references = await notedReferences(notes, { run: plan.run, resources: [resource] })
  const series = await seriesOf({ deps, plan, resource, destination }, layout.hashedWith)
  const place = placeOf(plan, destination)
  const publication = {
    ...read,
    facts,
    forExcel: series.forExcel,
    ...(references.length > 0 && { references }),
    ...(store !== undefined && { store }),
    signal,
  }
  const done = await to.publish(publication)
  const manifestPath = isFileDestination(destination)
    ? done.manifestPath
    : await keepCertificate(publication, done.manifest)
  if (manifestPath !== undefined) done.manifestPath = manifestPath
  const row = await toRow({ deps, plan, resource, series, place }, done)
  await deps.state.publications.add(row)
  return { row, sheet: await toSheet(done, store) }
}

/** What the state keeps of a publication. */
async function toRow(
  of: Read & { deps: PublishDeps; series: Series; place: string | undefined },
  { manifest, manifestPath }: Published,
): Promise<PublicationRow> {
  const { plan, resource, series, place } = of
  const { mode, capped, verdict, completeThrough, absentFields, unknownFields } = manifest
  return {
    ...series,
    ...(place !== undefined && { place }),
    run: plan.run,
    mode,
    capped,
    verdict,
    startedAt: begunAtOf(plan),
    completeThrough,
    changesThrough: await changesThrough({ ...of, manifest }),
    // A read of the whole list has seen what was changed before it.
    seenClaims: plan.seenClaims?.[resource] ?? 0,
    ...(manifest.records > 0 && { absentFields, unknownFields: Object.keys(unknownFields) }),
    ...(manifestPath !== undefined && { manifest: manifestPath }),
  }
}

/** Compares the fields of a read with those of earlier exports: which are new, and which the service no longer sends. */
async function withChangedFields(
  { state }: PublishDeps,
  excluded: readonly string[],
  { facts, resource, workspace, testMode, run, ...read }: Publication,
): Promise<Publication['facts']> {
  const { absentFields, unknownFields } = facts
  const unknown = Object.keys(unknownFields)
  if (absentFields.length + unknown.length === 0) return facts
  const earlier = (await state.publications.all({ testMode })).filter(
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

function toPublication(
  options: Read & {
    deps: Pick<PublishDeps, 'dataDir' | 'versions'>
    checkpoint: Checkpoint
    layout: ReadPlan
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
    begunAt: begunAtOf(plan),
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
    ...(isOfIds(outcome)
      ? { missing: { parts: named(missingPart), first: outcome.missing.first } }
      : { certificate: named(certificatePart) }),
    facts: toFacts({ plan, resource, checkpoint, layout }),
    versions: deps.versions,
    folder: plan.out ?? join(deps.dataDir, 'exports'),
    ...(plan.schema !== undefined && { schema: plan.schema }),
    ...(plan.maxDeletes !== undefined && { maxDeletes: plan.maxDeletes }),
  }
}

/** Whether a read fetched documents by id instead of reading a list. */
const isOfIds = (outcome: AnyOutcome): outcome is IdOutcome => 'asked' in outcome

/** The facts about a read that its manifest records: its outcome, its times, and which values did not fit. */
export function toFacts(options: Read & { checkpoint: Checkpoint; layout: ReadPlan }): ReadFacts {
  const { plan, resource, checkpoint, layout } = options
  const { read, savedAt, drift } = checkpoint
  const outcome = outcomeOf(checkpoint)
  const since = plan.since[resource]
  const whole = plan.whole?.[resource]
  return {
    ...outcome,
    scope: [...outcome.scope, ...(whole === undefined ? [] : [`The whole list was read, because ${whole}.`])],
    startedAt: new Date(read.startedAt).toISOString(),
    finishedAt: savedAt,
    ...(since !== undefined && { changedSince: new Date(since).toISOString() }),
    totals: judgeTotals(layout.tables, checkpoint.totals, drift.misfits),
    drift: drift.misfits,
    unknownFields: drift.unknownFields,
    absentFields: Object.entries(drift.absent).flatMap(([path, fields]) =>
      fields.map((field) => `${path}.${field}`),
    ),
  }
}
