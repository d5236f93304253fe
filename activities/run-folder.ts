import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { allResources, type ResourceName } from '../billing/resources/all-resources.ts'
import { replaceFile } from '../destinations/durable.ts'
import { isSystemError, PartsDamagedError } from '../destinations/errors.ts'
import { toFileName } from '../destinations/export-folder.ts'
import type { Table } from '../tables/table.ts'
import { toTables } from '../tables/to-tables.ts'
import { latestCheckpoint } from './checkpoint.ts'
import type { ExportPlan } from './export-plan.ts'
import { loadPublishNote, takeTurn } from './publish-note.ts'
import { toPrivacyMark } from './privacy-mark.ts'
import { executionOf, isOfWorkflow, type Execution } from './run-name.ts'

/**
 * How long ago a read may have begun for another run to go on from it, and for another execution of the same run: what
 * is published must be of the time that its run stands for.
 */
const adoptableMs = { otherRun: 3_600_000, sameRun: 24 * 3_600_000 }

const readNote = 'read.json'
const damagedNote = 'damaged.json'

export const partsFolder = (options: { dataDir: string; run: string; resource: string }) =>
  join(options.dataDir, 'parts', toFileName(options.run), options.resource)

/** What a read's parts hold: its tables as they were laid out when it began, and what tells one read from another. */
interface ReadNote {
  /** Two reads with the same one read the same thing: one may go on from what the other has read. */
  fingerprint: string
  run: string
  tables: Table[]
  /** What tells the key that values are hashed with; notes of earlier versions have none. */
  hashedWith?: string
}

function toReadNote(options: { plan: ExportPlan; resource: ResourceName; hashKey: string }): ReadNote {
  const { plan, resource, hashKey } = options
  const { identity, filters, maxPages, exclude, hash, since, ids } = plan
  const tables = toTables(allResources[resource], { exclude, hash, hashKey })
  const privacy = toPrivacyMark({ plan, hashKey })
  const asked = ids?.sha256
  const what = { resource, identity, filters, maxPages, privacy, since: since[resource], asked, tables }
  const fingerprint = createHash('sha256').update(JSON.stringify(what)).digest('hex')
  return { fingerprint, run: plan.run, tables, ...(privacy?.key && { hashedWith: privacy.key }) }
}

/** Undefined where there is none, or a torn one. Any other trouble is thrown: it must not pass for nothing read. */
async function loadReadNote(folder: string): Promise<ReadNote | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, readNote), 'utf8')) as ReadNote
  } catch (error) {
    if (
      error instanceof SyntaxError ||
      (isSystemError(error) && ['ENOENT', 'ENOTDIR'].includes(error.code ?? ''))
    )
      return undefined
    throw error
  }
}

/**
 * The tables that a read's parts hold, as the version that read them laid them out, and what tells the key of their
 * hashes.
 * @throws {PartsDamagedError}
 */
export async function layoutOfRead(folder: string): Promise<Pick<ReadNote, 'tables' | 'hashedWith'>> {
  const note = await loadReadNote(folder)
  if (note !== undefined) return note
  throw new PartsDamagedError(`The note of a read in ${folder} can't be read. Run the export again.`)
}

interface FolderOptions {
  dataDir: string
  plan: ExportPlan
  resource: ResourceName
  hashKey: string
  /** Whether a run has ended: what another one still reads is left alone. */
  isClosed: (owner: Execution) => Promise<boolean>
}

/**
 * Makes the folder a read writes its parts to. If the last run of the same input ended before it published
 * (stopped, failed, terminated), its folder is taken over by rename, and the read goes on from its checkpoint. A
 * read whose worker came back with other columns or another hash key begins anew.
 */
export async function openRunFolder(options: FolderOptions): Promise<string> {
  const { dataDir, plan, resource } = options
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  const note = toReadNote(options)
  if ((await loadReadNote(folder))?.fingerprint === note.fingerprint) return folder
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

/** The parts turned out not to hold what their notes say: no later run goes on from them. */
export async function markDamaged(folder: string): Promise<void> {
  await replaceFile(join(folder, damagedNote), '{}')
}

async function findAdoptable(options: FolderOptions & { fingerprint: string }): Promise<string | undefined> {
  const { dataDir, plan, resource, fingerprint, isClosed } = options
  const root = join(dataDir, 'parts')
  const found: { folder: string; at: number }[] = []
  for (const run of await readdir(root)) {
    const folder = join(root, run, resource)
    if ((await loadReadNote(folder))?.fingerprint !== fingerprint) continue
    const { destinations, publishing } = await loadPublishNote(folder)
    if (destinations.length > 0) continue
    if (await exists(join(folder, damagedNote))) continue
    const at = await startOfWhole(folder)
    const owner = await executionOf(join(root, run))
    if (at === undefined || at < oldestAdoptable({ plan, owner })) continue
    // A run to another destination may be reading the same list right now, or one publish what was read.
    const users = [...(owner === undefined ? [] : [owner]), ...publishing]
    const ended = await Promise.all(users.map(isClosed))
    if (ended.every(Boolean)) found.push({ folder, at })
  }
  return found.toSorted((a, b) => b.at - a.at)[0]?.folder
}

function oldestAdoptable({ plan, owner }: { plan: ExportPlan; owner: Execution | undefined }): number {
  const startedAt = Date.parse(plan.startedAt)
  if (owner !== undefined && isOfWorkflow(plan.run, owner.workflowId)) return startedAt - adoptableMs.sameRun
  // A scheduled run stands for its slot: what was read before that is not it, however young.
  const slot = plan.scheduledFor === undefined ? -Infinity : Date.parse(plan.scheduledFor)
  return Math.max(startedAt - adoptableMs.otherRun, slot)
}

/**
 * When the read began, if all that its last note speaks of is there: damaged parts are read anew instead of failing
 * every run. Not when it last wrote: a read that is stopped every day would grow old without an end.
 */
async function startOfWhole(folder: string): Promise<number | undefined> {
  try {
    const checkpoint = await latestCheckpoint(folder)
    const sizes = await Promise.all(
      (checkpoint?.parts ?? []).map(async ({ path }) => (await stat(path)).size),
    )
    const isWhole = checkpoint?.parts.every(({ bytes }, at) => (sizes[at] ?? 0) >= bytes) ?? false
    return isWhole ? checkpoint?.read.startedAt : undefined
  } catch {
    return undefined
  }
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )
