import { cancellationSignal, heartbeat } from '@temporalio/activity'
import { join } from 'node:path'
import type { Publication } from '../destinations/destination.ts'
import { PartsDamagedError, RowsMissingError } from '../destinations/errors.ts'
import { isDocumentName } from '../billing/resources/documents.ts'
import type { Manifest } from '../destinations/manifest.ts'
import { isWhole, notePublished, type PublishedNote } from '../destinations/published-notes.ts'
import type { ReadOutcome } from '../reading/outcome.ts'
import { Pace } from '../reports/pace.ts'
import { loadCheckpoint, type AnyOutcome, type Checkpoint } from './checkpoint.ts'
import { isOfIds, toFacts } from './read-facts.ts'
import type { ClaimOwner } from '../state/claims.ts'
import { claim, claimsOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { InvalidInput } from './errors.ts'
import { isOfTable, missingPart, rejectedPart } from './part-names.ts'
import type { DestinationName, ExportPlan } from './export-plan.ts'
import { markPublished } from './publish-note.ts'
import type { PublishAgain } from './publishing-input.ts'
import { layoutOfRead, markDamaged, partsFolder } from './run-folder.ts'
import { moveWatermark, placeOf } from './since.ts'

const heartbeatMs = 1_000

export interface PublishInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  destination: DestinationName
  /** The checkpoint that Temporal accepted: only its parts are published. */
  checkpoint: string
  /** Kept parts are published again, as this says. */
  again?: PublishAgain
  /** The run itself, not the part of it that publishes one list. */
  owner: ClaimOwner
}

export interface PublishedExport {
  resource: ExportPlan['resources'][number]
  destination: DestinationName
  verdict: 'proven' | 'unproven'
  reasons: string[]
  records: number
  /** For people: a folder, a file or a schema. */
  where: string
  /** The manifest's file; empty where the destination keeps none (a warehouse). */
  manifest: string
  /** What a person should look at: deletes that were held back. */
  warnings: string[]
  /** Of a fetch by id: the ids that do not exist, the first of them by name. */
  missing?: { count: number; first: string[] }
}

/** Makes a finished read visible in one destination, all at once or not at all. Safe to repeat. */
export function createPublishExport(deps: ActivityDeps) {
  return async function publishExport(input: PublishInput): Promise<PublishedExport> {
    const { plan, resource } = input
    for (const what of claimsOf({ resources: [resource], to: [input.destination] }))
      await claim({ deps, what, owner: input.owner })
    const destination = deps.destinations.get(input.destination)
    if (destination === undefined)
      throw new InvalidInput(`This worker has no destination ${input.destination}.`)
    const folder = partsFolder({ dataDir: deps.dataDir, run: plan.run, resource })
    const checkpoint = await loadCheckpoint(folder, input.checkpoint)
    const startedAt = performance.now()
    const beat = setInterval(() => heartbeat({ resource, destination: input.destination }), heartbeatMs)
    try {
      const layout = await layoutOfRead(folder)
      const publication = toPublication({ deps, plan, resource, checkpoint, layout })
      const published = await destination.publish({ ...publication, signal: cancellationSignal() })
      if (!isDocumentName(resource)) {
        const read = outcomeOf(checkpoint) as ReadOutcome
        await moveWatermark({ deps, plan, resource, destination: input.destination, read })
      }
      const note = toNote({ plan, ...published })
      await notePublished({ dataDir: deps.dataDir, published: note })
      await markPublished(folder, { destination: input.destination, asked: plan.to })
      const { verdict, reasons, records, missing, warnings = [] } = published.manifest
      deps.observer.did({
        did: 'published',
        run: plan.run,
        resource,
        destination: input.destination,
        verdict,
        records,
        ms: performance.now() - startedAt,
        readAt: Date.parse(note.startedAt),
        whole: isWhole(note),
      })
      return {
        resource,
        destination: input.destination,
        verdict,
        reasons,
        records,
        where: published.location,
        manifest: published.manifestPath ?? '',
        warnings,
        ...(missing !== undefined && { missing: { count: missing.rows, first: missing.first } }),
      }
    } catch (error) {
      if (error instanceof PartsDamagedError || error instanceof RowsMissingError) await markDamaged(folder)
      throw error
    } finally {
      clearInterval(beat)
    }
  }
}

function toNote(of: { plan: ExportPlan; manifest: Manifest; manifestPath?: string }): PublishedNote {
  const { plan, manifest, manifestPath } = of
  const { resource, destination, run, workspace, testMode, verdict } = manifest
  const { mode, filters, capped, excluded, hashed, startedAt, publishedAt } = manifest
  const place = placeOf(plan, destination)
  const what = { resource, destination, run, workspace, testMode, verdict, mode, filters, capped }
  return {
    ...what,
    excluded,
    hashed,
    forExcel: isSheet({ plan, destination }),
    startedAt,
    publishedAt,
    ...(place !== undefined && { place }),
    ...(manifestPath !== undefined && { manifest: manifestPath }),
  }
}

/** Only files are written for Excel; what goes to a warehouse beside them is as ever. */
const isSheet = ({ plan, destination }: { plan: ExportPlan; destination: DestinationName }): boolean =>
  plan.forExcel && destination === 'csv'

function toPublication(options: {
  deps: ActivityDeps
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  checkpoint: Checkpoint
  layout: Awaited<ReturnType<typeof layoutOfRead>>
}): Publication {
  const { deps, plan, resource, checkpoint, layout } = options
  const { tables, hashedWith } = layout
  const { parts } = checkpoint
  const outcome = outcomeOf(checkpoint)
  const named = (name: string) => parts.filter(({ table }) => table === name)
  const mode = plan.since[resource] === undefined ? 'full' : 'incremental'
  return {
    run: plan.run,
    resource,
    workspace: plan.identity.workspace,
    baseUrl: plan.identity.baseUrl,
    testMode: plan.identity.mode === 'test',
    mode: isOfIds(outcome) ? 'byId' : mode,
    filters: plan.filters,
    capped: !isOfIds(outcome) && outcome.capped,
    excluded: plan.exclude,
    hashed: plan.hash,
    ...(hashedWith !== undefined && { hashedWith }),
    tables,
    parts: parts.filter(isOfTable),
    rejected: named(rejectedPart),
    ...(isOfIds(outcome) && { missing: { parts: named(missingPart), first: outcome.missing.first } }),
    facts: toFacts({ plan, resource, checkpoint }),
    pace: new Pace(checkpoint.pace).points(),
    versions: deps.versions,
    folder: plan.out ?? join(deps.dataDir, 'exports'),
    forExcel: plan.forExcel,
    ...(plan.schema !== undefined && { schema: plan.schema }),
    ...(plan.maxDeletes !== undefined && { maxDeletes: plan.maxDeletes }),
  }
}

function outcomeOf({ name, outcome }: Checkpoint): AnyOutcome {
  if (outcome === undefined) throw new Error(`the checkpoint ${name} is not the end of a read`)
  return outcome
}
