import { randomUUID } from 'node:crypto'
import { open, readFile, readdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { PartFile } from '../../destinations/destination.ts'
import { PartsDamagedError } from '../../destinations/errors.ts'
import type { IdOutcome, IdState } from '../../reading/by-id/id-state.ts'
import type { ReadOutcome } from '../../reading/outcome.ts'
import type { ReadState } from '../../reading/state.ts'
import { InvalidInput } from '../../runs/errors.ts'

/** What a read goes on from, and the account it ends with: of a list, or of documents by id. */
export type AnyReadState = ReadState | IdState
export type AnyOutcome = ReadOutcome | IdOutcome

/** The note from which a read goes on: everything up to here is on disk, and nothing behind it counts. */
export interface Checkpoint {
  /** `00003-5ad01c77`: the third attempt in a row. Later ones sort behind. */
  name: string
  parts: PartFile[]
  /** How many values their columns could not hold, by place. */
  drift: Record<string, number>
  read: AnyReadState
  /** ISO 8601, this machine's clock. */
  savedAt: string
  /** Set by the last checkpoint of a read. */
  outcome?: AnyOutcome
}

/** How a read ended, by its last checkpoint. */
export function outcomeOf({ name, outcome }: Checkpoint): AnyOutcome {
  if (outcome === undefined) throw new Error(`the checkpoint ${name} is not the end of a read`)
  return outcome
}

const fileName = /^(\d{5}-[0-9a-f]{8})\.checkpoint\.json$/

/** A name for an attempt that goes on from `from`: it sorts behind it, and no other attempt has it. */
export function nextCheckpointName(from: Checkpoint | undefined): string {
  const generation = from === undefined ? 1 : Number(from.name.slice(0, 5)) + 1
  return `${String(generation).padStart(5, '0')}-${randomUUID().slice(0, 8)}`
}

/** Replaces the attempt's note by rename, so that a reader sees the old one or the new one, whole. */
export async function saveCheckpoint(folder: string, checkpoint: Checkpoint): Promise<void> {
  const path = join(folder, `${checkpoint.name}.checkpoint.json`)
  const file = await open(`${path}.new`, 'w')
  try {
    // Names, not paths: a later run may take over the folder under its own name.
    const parts = checkpoint.parts.map((part) => ({ ...part, path: basename(part.path) }))
    await file.writeFile(JSON.stringify({ ...checkpoint, parts }))
    await file.datasync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}

/** @throws {InvalidInput} the name is not a checkpoint's @throws {PartsDamagedError} */
export async function loadCheckpoint(folder: string, name: string): Promise<Checkpoint> {
  const file = `${name}.checkpoint.json`
  if (!fileName.test(file))
    throw new InvalidInput(`checkpoint: ${JSON.stringify(name)} is not the name of one.`)
  const path = join(folder, file)
  const checkpoint = await readCheckpoint(path).catch((cause: unknown) => {
    throw new PartsDamagedError(`The note of what was read, ${path}, can't be read. Run the export again.`, {
      cause,
    })
  })
  return {
    ...checkpoint,
    parts: checkpoint.parts.map((part) => ({ ...part, path: join(folder, part.path) })),
  }
}

const readCheckpoint = async (path: string) => JSON.parse(await readFile(path, 'utf8')) as Checkpoint

/** The note of the latest attempt that wrote one, or undefined where nothing was read yet. */
export async function latestCheckpoint(folder: string): Promise<Checkpoint | undefined> {
  const entries = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const latest = entries
    .flatMap((entry) => fileName.exec(entry)?.[1] ?? [])
    .toSorted()
    .at(-1)
  return latest === undefined ? undefined : loadCheckpoint(folder, latest)
}

/** Where a segment ended: counts and names only, so that no row ever enters a workflow's history. */
export interface SegmentResult {
  /** The checkpoint to publish, or to go on from. */
  checkpoint: string
  records: number
  requests: number
  /** The service's own count, a hint. */
  expected?: number
  /** Set when the read is whole. */
  verdict?: 'proven' | 'unproven'
}

export function toResult({ name, outcome, read }: Checkpoint): SegmentResult {
  const { counts, requests, countBefore } = read
  return {
    checkpoint: name,
    records: counts.records,
    requests: requests.made,
    ...(countBefore === undefined ? {} : { expected: countBefore }),
    ...(outcome === undefined ? {} : { verdict: outcome.verdict }),
  }
}
