import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { allResources, type ResourceName } from '../../billing/resources/lists.ts'
import { PartsDamagedError } from '../../destinations/errors.ts'
import { toFileName } from '../../storage/file-name.ts'
import { PrivacyRefusedError, toTables, UnknownFieldError } from '../../tables/privacy.ts'
import type { Table } from '../../tables/table.ts'
import { toPrivacyMark } from '../privacy-fingerprint.ts'
import { utimes } from 'node:fs/promises'
import type { SharedFolder } from '../../storage/cached.ts'
import { orMissing } from '../../storage/system-errors.ts'
import type { ExportPlan } from '../plan.ts'
import { latestCheckpoint } from './checkpoint.ts'

export const partsFolder = (options: { dataDir: string; run: string; resource: string }) =>
  join(options.dataDir, 'parts', toFileName(options.run), options.resource)

interface PartsFolder {
  shared: SharedFolder
  /** The folder of a resource's parts. */
  folder: string
}

/** Describes a read's parts. The first attempt writes it, and it never changes. */
interface ReadNote {
  /** Identifies what is read, and how it is written: attempts that differ would mix their rows. */
  fingerprint: string
  /** When the run that began it was started, by Temporal's clock, as scheduled slots are: a worker's clock may be wrong. */
  begunAt: string
  tables: Table[]
  /** Fingerprint of the key that values are hashed with. */
  hashedWith?: string
}

interface ReadOptions {
  dataDir: string
  shared: SharedFolder
  plan: ExportPlan
  resource: ResourceName
  hashKey: string
}

function toReadNote({
  plan,
  resource,
  hashKey,
}: Pick<ReadOptions, 'plan' | 'resource' | 'hashKey'>): ReadNote {
  const { exclude, hash, startedAt, scheduledFor = startedAt } = plan
  const tables = toTables(allResources[resource], { exclude, hash, hashKey })
  const privacy = toPrivacyMark({ plan, hashKey })
  // What a column means to people may be said in other words by another version.
  const what = JSON.stringify({ privacy, tables }, (name, value: unknown) =>
    name === 'note' ? undefined : value,
  )
  return {
    fingerprint: createHash('sha256').update(what).digest('hex'),
    // A run of a schedule begins at its slot, even where two of Temporal's hosts differ.
    begunAt: new Date(Math.max(Date.parse(startedAt), Date.parse(scheduledFor))).toISOString(),
    tables,
    ...(privacy?.key && { hashedWith: privacy.key }),
  }
}

async function loadReadNote({ shared, folder }: PartsFolder): Promise<ReadNote | undefined> {
  const text = await shared.read(join(folder, 'read.json'))
  return text === undefined ? undefined : (JSON.parse(text) as ReadNote)
}

/**
 * The table layout of a read's parts, as the version that read them defined it, the fingerprint of their hash key, and
 * when the read began.
 *
 * @throws {PartsDamagedError} the file that describes the read is missing
 */
export async function layoutOfRead(place: PartsFolder): Promise<ReadNote> {
  const note = await loadReadNote(place)
  if (note !== undefined) return note
  throw new PartsDamagedError(`The note of a read in ${place.folder} is missing. Run the export again.`)
}

/** Another worker began the read with other columns or another hash key: one like it must continue. */
class OtherReadError extends Error {
  override readonly name = 'OtherReadError'
  readonly retryable = true
  constructor({ resource, run }: { resource: string; run: string }) {
    super(
      `A worker with another version or another CONNECTOR_HASH_KEY began to read ${resource} in the run ${run}. ` +
        'One like it has to continue. If there is none any more, start a new run.',
    )
  }
}

/**
 * The folder for a read's parts. The first attempt decides the columns and the hash key.
 *
 * @throws {OtherReadError}
 */
export async function openRunFolder(options: ReadOptions): Promise<string> {
  const { dataDir, shared, plan, resource } = options
  const found = await findRunFolder(options)
  if (found !== undefined) return found
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  if (await shared.create(join(folder, 'read.json'), JSON.stringify(toReadNote(options)))) return folder
  // Another worker has been quicker.
  return (await findRunFolder(options)) ?? folder
}

/**
 * The folder of a read that another step has begun; undefined if it is gone.
 *
 * @throws {OtherReadError}
 */
export async function findRunFolder(options: ReadOptions): Promise<string | undefined> {
  const { dataDir, shared, plan, resource } = options
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  const begun = await loadReadNote({ shared, folder })
  if (begun === undefined) return undefined
  if (begun.fingerprint === fingerprintOf(options)) return folder
  throw new OtherReadError({ resource, run: plan.run })
}

/** Undefined for a worker that cannot read it at all: it has no hash key, or does not know a column. */
function fingerprintOf(options: ReadOptions): string | undefined {
  try {
    return toReadNote(options).fingerprint
  } catch (error) {
    if (error instanceof PrivacyRefusedError || error instanceof UnknownFieldError) return undefined
    throw error
  }
}

/** A resource that a run has read completely, and the checkpoint to publish. */
interface KeptRead {
  resource: ExportPlan['resources'][number]
  checkpoint: string
}

/** Finds the completed reads of a run, which are kept for another 14 days from now on. */
export async function reserveParts(options: {
  dataDir: string
  shared: SharedFolder
  plan: ExportPlan
}): Promise<KeptRead[]> {
  const { dataDir, shared, plan } = options
  const { run, resources } = plan
  const found: KeptRead[] = []
  for (const resource of resources) {
    const folder = partsFolder({ dataDir, run, resource })
    const last = await latestCheckpoint({ shared, folder })
    if (last?.outcome === undefined) continue
    found.push({ resource, checkpoint: last.name })
  }
  const now = new Date()
  // Parts are pruned by the age of the run's folder.
  if (found.length > 0) await orMissing(utimes(partsFolder({ dataDir, run, resource: '' }), now, now))
  return found
}
