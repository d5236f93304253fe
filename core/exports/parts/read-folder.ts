import { createHash } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { allResources, type ResourceName } from '../../billing/resources/all-resources.ts'
import { replaceFile } from '../../storage/durable.ts'
import { isSystemError } from '../../storage/system-errors.ts'
import { PartsDamagedError } from '../../destinations/errors.ts'
import { toFileName } from '../../storage/file-name.ts'
import type { SharedFolder } from '../../storage/shared-folder.ts'
import { PrivacyRefusedError } from '../../tables/privacy.ts'
import { UnknownFieldError } from '../../tables/privacy.ts'
import type { Table } from '../../tables/table.ts'
import { toTables } from '../../tables/privacy.ts'
import { latestCheckpoint } from './checkpoint.ts'
import { loadRanges } from './ranges/kept-ranges.ts'
import type { ExportPlan } from '../plan.ts'
import { loadPublishNote, takeTurn } from './publish-record.ts'
import { toPrivacyMark } from '../privacy-fingerprint.ts'
import { executionOf, isOfWorkflow, type Execution } from '../../runs/name.ts'

/**
 * The oldest read, in ms, that another run may adopt, and another execution of the same run: published data must
 * date from the time of its run.
 */
const adoptableMs = { otherRun: 3_600_000, sameRun: 24 * 3_600_000 }

const readNote = 'read.json'
const damagedNote = 'damaged.json'

export const partsFolder = (options: { dataDir: string; run: string; resource: string }) =>
  join(options.dataDir, 'parts', toFileName(options.run), options.resource)

interface Place {
  shared: SharedFolder
  /** The folder of a resource's parts. */
  folder: string
}

/** Describes a read's parts: the table layout at the start of the read, and the fingerprint that identifies it. */
interface ReadNote {
  /** Identifies what is read: a run may adopt the parts of another run with the same fingerprint. */
  fingerprint: string
  run: string
  /** When the run that began it was started, by Temporal's clock, as scheduled slots are: a worker's clock may be wrong. */
  begunAt: string
  tables: Table[]
  /** Fingerprint of the key that values are hashed with; absent in files of earlier versions. */
  hashedWith?: string
}

function toReadNote(options: { plan: ExportPlan; resource: ResourceName; hashKey: string }): ReadNote {
  const { plan, resource, hashKey } = options
  const { identity, filters, maxPages, exclude, hash, since, ids } = plan
  const tables = toTables(allResources[resource], { exclude, hash, hashKey })
  const privacy = toPrivacyMark({ plan, hashKey })
  const asked = ids?.sha256
  // A read from before a change that no incremental read sees is not that of a run after it.
  const seenClaims = since[resource] === undefined ? plan.seenClaims?.[resource] : undefined
  const what = {
    resource,
    identity,
    filters,
    maxPages,
    privacy,
    since: since[resource],
    seenClaims,
    asked,
    tables,
  }
  const fingerprint = createHash('sha256').update(JSON.stringify(what)).digest('hex')
  const { run, startedAt, scheduledFor = startedAt } = plan
  // A run of a schedule begins at its slot, even where two of Temporal's hosts differ.
  const begunAt = new Date(Math.max(Date.parse(startedAt), Date.parse(scheduledFor))).toISOString()
  return { fingerprint, run, begunAt, tables, ...(privacy?.key && { hashedWith: privacy.key }) }
}

/**
 * Undefined if the file is missing or incomplete. Any other error is thrown: it must not pass for "nothing read
 * yet".
 */
async function loadReadNote({ shared, folder }: Place): Promise<ReadNote | undefined> {
  try {
    const text = await shared.read(join(folder, readNote))
    return text === undefined ? undefined : (JSON.parse(text) as ReadNote)
  } catch (error) {
    if (error instanceof SyntaxError || isSystemError(error, 'ENOTDIR')) return undefined
    throw error
  }
}

/**
 * The table layout of a read's parts, as the version that read them defined it, the fingerprint of their hash key, and
 * when the read began.
 *
 * @throws {PartsDamagedError} the file that describes the read is missing or incomplete
 */
export async function layoutOfRead(
  place: Place,
): Promise<Pick<ReadNote, 'tables' | 'hashedWith' | 'begunAt'>> {
  const note = await loadReadNote(place)
  if (note !== undefined) return note
  throw new PartsDamagedError(`The note of a read in ${place.folder} can't be read. Run the export again.`)
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

interface FolderOptions {
  dataDir: string
  shared: SharedFolder
  plan: ExportPlan
  resource: ResourceName
  hashKey: string
  /** Whether a run has ended. Parts that an active run is reading are left alone. */
  isClosed: (owner: Execution) => Promise<boolean>
}

/**
 * Creates the folder for a read's parts. If the last run with the same input ended before it published (stopped,
 * failed, terminated), adopts its folder by rename, and the read resumes from its checkpoint. Starts over if the
 * worker's columns or hash key have changed.
 *
 * Where several workers read, no other run's folder is adopted, and the first attempt decides the columns.
 *
 * @throws {OtherReadError}
 */
export async function openRunFolder(options: FolderOptions): Promise<string> {
  const { dataDir, shared, plan, resource } = options
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  if ((await findRunFolder(options)) !== undefined) return folder
  const note = toReadNote(options)
  if (shared.isShared) {
    if (await shared.create(join(folder, readNote), JSON.stringify(note))) return folder
    // Another worker has been quicker.
    return (await findRunFolder(options)) ?? folder
  }
  await rm(folder, { recursive: true, force: true })
  await mkdir(join(folder, '..'), { recursive: true })
  const adopted = await takeTurn(dataDir, async () => {
    const left = await findAdoptable({ ...options, fingerprint: note.fingerprint })
    if (left !== undefined) await rename(left, folder)
    return left !== undefined
  })
  if (adopted) return folder
  await mkdir(folder, { recursive: true })
  await replaceFile(join(folder, readNote), JSON.stringify(note))
  return folder
}

/**
 * The folder of a read that another step has begun; undefined if it is gone, or, where one worker reads, was read with other
 * columns or another hash key: then the read starts over. Where several workers read, one like the first has to continue.
 *
 * @throws {OtherReadError}
 */
export async function findRunFolder(options: Omit<FolderOptions, 'isClosed'>): Promise<string | undefined> {
  const { dataDir, shared, plan, resource } = options
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  const begun = await loadReadNote({ shared, folder })
  if (begun === undefined) return undefined
  if (begun.fingerprint === fingerprintOf(options)) return folder
  if (shared.isShared) throw new OtherReadError({ resource, run: plan.run })
  return undefined
}

/** Undefined for a worker that cannot read it at all: it has no hash key, or does not know a column. */
function fingerprintOf(options: Parameters<typeof toReadNote>[0]): string | undefined {
  try {
    return toReadNote(options).fingerprint
  } catch (error) {
    if (error instanceof PrivacyRefusedError || error instanceof UnknownFieldError) return undefined
    throw error
  }
}

/** Marks parts as damaged (they do not match their checkpoint), so that no later run adopts them. */
export async function markDamaged(folder: string): Promise<void> {
  await replaceFile(join(folder, damagedNote), '{}')
}

async function findAdoptable(options: FolderOptions & { fingerprint: string }): Promise<string | undefined> {
  const { dataDir, shared, plan, resource, fingerprint, isClosed } = options
  const root = join(dataDir, 'parts')
  const found: { folder: string; at: number }[] = []
  for (const run of await readdir(root)) {
    const folder = join(root, run, resource)
    const note = await loadReadNote({ shared, folder })
    if (note?.fingerprint !== fingerprint) continue
    const { destinations, publishing } = await loadPublishNote({ shared, folder })
    if (destinations.length > 0) continue
    if (await exists(join(folder, damagedNote))) continue
    const at = Date.parse(note.begunAt)
    const owner = await executionOf(join(root, run))
    // Earlier versions did not note when a read began: NaN is too old, too.
    if (!(at >= oldestAdoptable({ plan, owner })) || !(await isWhole({ shared, folder }))) continue
    // Another run may still be reading the list for a different destination, or publishing these parts.
    const users = [...(owner === undefined ? [] : [owner]), ...publishing]
    const ended = await Promise.all(users.map(isClosed))
    if (ended.every(Boolean)) found.push({ folder, at })
  }
  return found.toSorted((a, b) => b.at - a.at)[0]?.folder
}

function oldestAdoptable({ plan, owner }: { plan: ExportPlan; owner: Execution | undefined }): number {
  const startedAt = Date.parse(plan.startedAt)
  if (owner !== undefined && isOfWorkflow(plan.run, owner.workflowId)) return startedAt - adoptableMs.sameRun
  // The start counts, not the last write: a read that is stopped every day would otherwise never become too old. A
  // scheduled run represents its slot: a read from before the slot does not qualify, however recent.
  const slot = plan.scheduledFor === undefined ? -Infinity : Date.parse(plan.scheduledFor)
  return Math.max(startedAt - adoptableMs.otherRun, slot)
}

/** Whether every part named by the last checkpoint is complete: damaged parts are read again instead of failing every run. */
async function isWhole(place: Place): Promise<boolean> {
  try {
    const checkpoint = await latestCheckpoint(place)
    const ranges = checkpoint === undefined ? await loadRanges(place) : undefined
    if (checkpoint === undefined && ranges === undefined) return false
    const parts = checkpoint?.parts ?? ranges?.checkpoints.flatMap((range) => range?.parts ?? []) ?? []
    const sizes = await Promise.all(parts.map(async ({ path }) => (await stat(path)).size))
    return parts.every(({ bytes }, at) => (sizes[at] ?? 0) >= bytes)
  } catch {
    return false
  }
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )
