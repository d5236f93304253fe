import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { PartFile } from '../../destinations/destination.ts'
import { PartsDamagedError } from '../../destinations/errors.ts'
import type { IdOutcome, IdState } from '../../reading/read-by-id.ts'
import type { ReadOutcome } from '../../reading/outcome.ts'
import type { RangeState } from '../../reading/range-state.ts'
import { InvalidInput } from '../../runs/errors.ts'
import type { Drift } from '../../tables/drift.ts'
import type { Totals } from '../../tables/totals.ts'
import type { SharedFolder } from '../../storage/cached.ts'

/** The state from which a read resumes, and the outcome it ends with: of a list, or of documents by id. */
export type AnyReadState = RangeState | IdState
export type AnyOutcome = ReadOutcome | IdOutcome

/** The point from which a read resumes: everything before it is kept, and anything after it is ignored. It never changes. */
export interface Checkpoint {
  /**
   * For example `00003-5ad01c77.00012`: the twelfth checkpoint of the third attempt in a row, and at the end of the read
   * `00003-5ad01c77.ended`. Later attempts sort after earlier ones.
   */
  name: string
  parts: PartFile[]
  drift: Drift
  totals: Totals
  read: AnyReadState
  /** ISO 8601, by the clock that the read goes by. */
  savedAt: string
  /** Set in the last checkpoint of a whole read only. */
  outcome?: AnyOutcome
}

/** Whether a read, or that of a range, came to its end. */
export const hasEnded = ({ name }: Checkpoint): boolean => name.endsWith('.ended')

/** The outcome of a finished read, from its last checkpoint. */
export function outcomeOf({ name, outcome }: Checkpoint): AnyOutcome {
  if (outcome === undefined) throw new Error(`the checkpoint ${name} is not the end of a read`)
  return outcome
}

const fileName = /^(\d{5}-[0-9a-f]{8}\.(?:\d{5}|ended))\.checkpoint\.json$/

/** Names an attempt that resumes from `from`. The name is unique and sorts after `from`. */
export function nameAttempt(from: Checkpoint | undefined): string {
  const generation = from === undefined ? 1 : Number(from.name.slice(0, 5)) + 1
  return `${String(generation).padStart(5, '0')}-${randomUUID().slice(0, 8)}`
}

/** Names one of the checkpoints of an attempt. */
export const nameOf = (of: { attempt: string; saves: number; isLast: boolean }): string =>
  `${of.attempt}.${of.isLast ? 'ended' : String(of.saves).padStart(5, '0')}`

/** A checkpoint as it is saved. */
interface CheckpointNote extends Checkpoint {
  /** The checkpoint that the attempt resumed from, whose parts are not repeated: there are many. */
  from?: string
}

interface PartsFolder {
  shared: SharedFolder
  /** The folder of the parts. */
  folder: string
}

/**
 * Saves a checkpoint whose parts are kept.
 *
 * @param options.from the checkpoint that the attempt resumed from
 */
export async function saveCheckpoint(
  options: PartsFolder & { checkpoint: Checkpoint; from?: Checkpoint | undefined },
): Promise<void> {
  const { shared, folder, checkpoint, from } = options
  const path = pathOf(folder, checkpoint.name)
  const inherited = new Set(from?.parts.map((part) => part.path))
  const note: CheckpointNote = {
    ...checkpoint,
    ...(from !== undefined && { from: from.name }),
    // Each worker has its own data folder.
    parts: checkpoint.parts
      .filter((part) => !inherited.has(part.path))
      .map((part) => ({ ...part, path: relative(folder, part.path) })),
  }
  if (!(await shared.create(path, JSON.stringify(note))))
    throw new Error(`there is another checkpoint ${checkpoint.name}`)
}

const pathOf = (folder: string, name: string) => join(folder, `${name}.checkpoint.json`)

/**
 * Loads a checkpoint by name.
 *
 * @throws {InvalidInput} `name` is not a valid checkpoint name
 * @throws {PartsDamagedError} the checkpoint, or one that it builds on, is missing or unreadable
 */
export async function loadCheckpoint({
  shared,
  folder,
  name,
}: PartsFolder & { name: string }): Promise<Checkpoint> {
  if (!fileName.test(`${name}.checkpoint.json`))
    throw new InvalidInput(`checkpoint: ${JSON.stringify(name)} is not the name of one.`)
  const { from, ...checkpoint } = await loadNote({ shared, folder, name })
  const parts = [checkpoint.parts]
  for (let base = from; base !== undefined;) {
    const note = await loadNote({ shared, folder, name: base })
    parts.unshift(note.parts)
    base = note.from
  }
  return {
    ...checkpoint,
    parts: parts.flat().map((part) => ({ ...part, path: join(folder, part.path) })),
  }
}

async function loadNote({ shared, folder, name }: PartsFolder & { name: string }): Promise<CheckpointNote> {
  const path = pathOf(folder, name)
  await shared.fetch(path)
  try {
    return JSON.parse(await readFile(path, 'utf8')) as CheckpointNote
  } catch (cause) {
    throw new PartsDamagedError(`The note of what was read, ${path}, can't be read. Run the export again.`, {
      cause,
    })
  }
}

/**
 * Loads the latest attempt's checkpoint; undefined if nothing was read yet. Where a read has ended, that is the end of
 * it: an attempt that was given up may have saved another checkpoint since.
 *
 * @throws {PartsDamagedError} the checkpoint is unreadable
 */
export async function latestCheckpoint({ shared, folder }: PartsFolder): Promise<Checkpoint | undefined> {
  const names = (await shared.list(folder)).flatMap((entry) => fileName.exec(entry)?.[1] ?? []).toSorted()
  const latest = names.findLast((name) => name.endsWith('.ended')) ?? names.at(-1)
  return latest === undefined ? undefined : await loadCheckpoint({ shared, folder, name: latest })
}

/** How far a read has come: only counts, so that no row enters a workflow's history. */
export interface ReadProgress {
  records: number
  requests: number
  /** The service's own count; only a hint. */
  expected?: number
}

export function toProgress({ counts, countBefore }: AnyReadState): ReadProgress {
  return {
    records: counts.records,
    requests: counts.requests,
    ...(countBefore === undefined ? {} : { expected: countBefore }),
  }
}
