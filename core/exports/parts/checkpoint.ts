import { randomUUID } from 'node:crypto'
import { open, readFile, readdir, rename } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { PartFile } from '../../destinations/destination.ts'
import { PartsDamagedError } from '../../destinations/errors.ts'
import type { IdOutcome, IdState } from '../../reading/by-id/id-state.ts'
import type { ReadOutcome } from '../../reading/outcome.ts'
import type { ReadState } from '../../reading/state.ts'
import { InvalidInput } from '../../runs/errors.ts'

/** The state from which a read resumes, and the outcome it ends with: of a list, or of documents by id. */
export type AnyReadState = ReadState | IdState
export type AnyOutcome = ReadOutcome | IdOutcome

/** The point from which a read resumes: everything before it is on disk, and anything after it is ignored. */
export interface Checkpoint {
  /** For example `00003-5ad01c77`: the third attempt in a row. Later attempts sort after earlier ones. */
  name: string
  parts: PartFile[]
  /** The number of values that did not fit their column, by column. */
  drift: Record<string, number>
  read: AnyReadState
  /** ISO 8601, by this machine's clock. */
  savedAt: string
  /** Set in the last checkpoint of a read only. */
  outcome?: AnyOutcome
}

/** The outcome of a finished read, from its last checkpoint. */
export function outcomeOf({ name, outcome }: Checkpoint): AnyOutcome {
  if (outcome === undefined) throw new Error(`the checkpoint ${name} is not the end of a read`)
  return outcome
}

const fileName = /^(\d{5}-[0-9a-f]{8})\.checkpoint\.json$/

/** Names the checkpoint of an attempt that resumes from `from`. The name is unique and sorts after `from`. */
export function nextCheckpointName(from: Checkpoint | undefined): string {
  const generation = from === undefined ? 1 : Number(from.name.slice(0, 5)) + 1
  return `${String(generation).padStart(5, '0')}-${randomUUID().slice(0, 8)}`
}

/** Replaces the attempt's checkpoint by rename, so that a reader sees either the old one or the new one in full. */
export async function saveCheckpoint(folder: string, checkpoint: Checkpoint): Promise<void> {
  const path = join(folder, `${checkpoint.name}.checkpoint.json`)
  const file = await open(`${path}.new`, 'w')
  try {
    // Paths within the folder: a later run may adopt it under its own name.
    const parts = checkpoint.parts.map((part) => ({ ...part, path: relative(folder, part.path) }))
    await file.writeFile(JSON.stringify({ ...checkpoint, parts }))
    await file.datasync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}

/**
 * Loads a checkpoint by name.
 *
 * @throws {InvalidInput} `name` is not a valid checkpoint name
 * @throws {PartsDamagedError} the checkpoint is missing or unreadable
 */
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

/**
 * Loads the latest attempt's checkpoint; undefined if nothing was read yet.
 *
 * @throws {PartsDamagedError} the checkpoint is unreadable
 */
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

/** How far a read has come: only counts, so that no row enters a workflow's history. */
export interface SegmentProgress {
  records: number
  requests: number
  /** The service's own count; only a hint. */
  expected?: number
}

/** The end of a segment. */
export interface SegmentResult extends SegmentProgress {
  /** The checkpoint to publish or to resume from. */
  checkpoint: string
  /** Set when the read is finished. */
  verdict?: 'proven' | 'unproven'
}

export function toProgress({ counts, requests, countBefore }: AnyReadState): SegmentProgress {
  return {
    records: counts.records,
    requests: requests.made,
    ...(countBefore === undefined ? {} : { expected: countBefore }),
  }
}

export function toResult({ name, outcome, read }: Checkpoint): SegmentResult {
  return {
    checkpoint: name,
    ...toProgress(read),
    ...(outcome === undefined ? {} : { verdict: outcome.verdict }),
  }
}
