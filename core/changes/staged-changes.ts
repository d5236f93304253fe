import { createReadStream, existsSync, writeFileSync } from 'node:fs'
import { mkdir, open, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { KeySpace } from '../state/ledger/queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { NewChange, StageResult } from '../state/ledger/stage.ts'
import type { Body } from '../billing/client.ts'
import type { ChangeKind, ChangeKindName } from './change-kind.ts'
import { changeKinds } from './kinds.ts'
import { readJson, removeTemporaries, replaceFile, syncPath, temporaryName } from '../storage/durable.ts'
import { runFilesLost } from './errors.ts'
import { OldLedgerError } from '../state/errors.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { toFileName } from '../storage/file-name.ts'
import { isSystemError } from '../storage/system-errors.ts'

/** A change that an import or a recovery requests. Numbers of its body are as `parseLossless` returns them. */
export interface ChangeToStage extends Omit<NewChange, 'key' | 'body' | 'restored'> {
  body: Body
}

/** The same with its key, and with its body exactly as it will be sent. */
export const toNewChange = ({ kind, change }: { kind: ChangeKind; change: ChangeToStage }): NewChange => ({
  ...change,
  key: kind.keyOf(change.body),
  body: JSON.stringify(change.body),
})

/** The first line: whose changes they are. */
export interface ChangesOf extends KeySpace {
  run: string
  kind: ChangeKindName
}

interface Begin {
  begin: ChangesOf & { at: string }
}

/** The last line: without it, the file was cut short. */
interface End {
  end: number
}

/**
 * Called with changes whose keys other runs hold. The rows it returns are staged as closed; it has released the keys of
 * the others, which are staged normally.
 */
export type OnKeyHeld = (
  held: StageResult['held'],
) => Promise<ReadonlyMap<number, NonNullable<ChangeToStage['closed']>>>

/**
 * Changes staged in one write: each write stores every page of the ledger's indexes that it changes, and with 1,000 at a
 * time those of 100,000 changes are stored ten times over (1.2 GB instead of 0.3). Bodies of up to 64 KB count by their
 * length, so that memory stays flat.
 */
const batchRows = 5_000
const batchLength = 4_000_000

/** What is decided on a change after its line was written: the reason why it is not sent, or ids of others like it. */
export type Decided = Pick<NewChange, 'closed' | 'before'>

/**
 * The changes of a run, in a file of its folder: they are matched from there, staged from there, and staged again from
 * there if the ledger loses them. Until it is kept, the file has a temporary name, and is removed in the end.
 */
export interface ChangesFile extends AsyncDisposable {
  add(change: NewChange): void
  /** What was added so far, in batches of bounded length. */
  batches(): AsyncGenerator<NewChange[]>
  /** Gives the file its name, durably, before any of its changes is staged. Returns their number. */
  keep(decided?: ReadonlyMap<number, Decided>): Promise<number>
}

const names = {
  changes: 'staged-changes.jsonl',
  /** What was decided on some of them before they were staged. */
  decided: 'decided-changes.json',
  checkpoint: 'checkpoint.json',
} as const

/** Letters that are written together. */
const writeLength = 1_000_000

export async function createChangesFile(folder: string, of: ChangesOf): Promise<ChangesFile> {
  const path = join(folder, names.changes)
  await mkdir(folder, { recursive: true })
  await removeTemporaries(path)
  const temporary = temporaryName(path)
  const file = await open(temporary, 'wx')
  let pending = ''
  let count = 0
  const write = (line: NewChange | Begin | End) => {
    pending += `${JSON.stringify(line)}\n`
    if (pending.length >= writeLength) flush()
  }
  const flush = () => {
    writeFileSync(file.fd, pending)
    pending = ''
  }
  const { run, workspace, mode, kind } = of
  write({ begin: { run, workspace, mode, kind, at: new Date().toISOString() } })
  return {
    add(change) {
      write(change)
      count += 1
    },
    async *batches() {
      flush()
      yield* readBatches(temporary)
    },
    async keep(decided) {
      write({ end: count })
      flush()
      await file.sync()
      const decisions = join(folder, names.decided)
      if (decided === undefined || decided.size === 0) await rm(decisions, { force: true })
      else await replaceFile(decisions, JSON.stringify([...decided]))
      await rename(temporary, path)
      await syncPath(folder)
      return count
    },
    async [Symbol.asyncDispose]() {
      await file.close()
      await rm(temporary, { force: true })
      // Of an attempt that kept nothing, nothing is left.
      await rmdir(folder).catch(() => undefined)
    },
  }
}

/** A folder of changes that are all staged, with the notes of their run, as a state needs them that has lost them. */
export interface Checkpoint {
  folder: string
  run: string
  /** How many changes are staged. */
  staged: number
  notes: Readonly<Record<string, unknown>>
}

/** Keeps the changes of a folder for workers on other machines. */
export async function shareChanges(shared: SharedFolder, folder: string): Promise<void> {
  for (const name of [names.changes, names.decided])
    if (existsSync(join(folder, name))) await shared.keep(join(folder, name))
}

/** Makes the folder have the changes that a step on another machine has kept. */
export async function fetchChanges(shared: SharedFolder, folder: string): Promise<void> {
  for (const name of [names.changes, names.decided]) await shared.fetch(join(folder, name))
}

/** Says durably that all changes of a folder are staged: a repair stages them again if the state has lost them. */
export async function writeCheckpoint(
  shared: SharedFolder,
  { folder, ...checkpoint }: Checkpoint,
): Promise<void> {
  await shared.update(join(folder, names.checkpoint), () => JSON.stringify(checkpoint))
}

/**
 * How many changes a run has staged, as its folder shows. A state that was restored from before the run knows none of it,
 * and would stage the run again.
 */
export async function stagedBefore(shared: SharedFolder, folder: string): Promise<number> {
  return (await readCheckpoints(shared, folder)).at(-1)?.staged ?? 0
}

/** @throws {OldLedgerError} the folder of a run that the state does not know shows that all of its changes were staged */
export async function refuseForgotten(
  { dataDir, shared }: { dataDir: string; shared: SharedFolder },
  run: string,
): Promise<void> {
  const folders = ['imports', 'recoveries'].map((room) => join(dataDir, room, toFileName(run)))
  const found = await Promise.all(folders.map((folder) => shared.find(folder, names.checkpoint)))
  if (found.flat().length > 0) throw new OldLedgerError({ lacks: `what is known of ${run}` })
}

/** The checkpoints below a folder, the earliest first. */
export async function readCheckpoints(shared: SharedFolder, below: string): Promise<Checkpoint[]> {
  const paths = (await shared.find(below, names.checkpoint)).toSorted()
  const all = paths.map(async (path): Promise<Checkpoint[]> => {
    const text = await shared.read(path)
    return text === undefined
      ? []
      : [{ ...(JSON.parse(text) as Omit<Checkpoint, 'folder'>), folder: dirname(path) }]
  })
  return (await Promise.all(all)).flat()
}

/**
 * Stages the changes kept in a run's folder; those already in the ledger are left as they are. Returns the number of the
 * others.
 * @throws {ChangeError} if the file is missing or was cut short
 */
export async function stageKeptChanges({
  ledger,
  folder,
  onHeld,
  prepare = (kept) => Promise.resolve(kept),
  signal,
}: {
  ledger: Ledger
  folder: string
  onHeld: OnKeyHeld
  /** What a repair knows of them, and a run that stages them for the first time does not. */
  prepare?: (kept: readonly NewChange[]) => Promise<readonly NewChange[]>
  signal?: AbortSignal | undefined
}): Promise<number> {
  const { at: _, kind, ...of } = await readBegin(folder)
  const place = { ...of, kind, repeats: changeKinds[kind].repeats }
  let count = 0
  for await (const kept of readKeptChanges(folder)) {
    signal?.throwIfAborted()
    const changes = await prepare(kept)
    const { staged, held } = await ledger.stage({ ...place, changes })
    count += staged
    if (held.length === 0) continue
    const closed = await onHeld(held)
    const rows = new Set(held.map(({ row }) => row))
    const released = changes.flatMap((change) => {
      const instead = closed.get(change.row) ?? change.closed
      return rows.has(change.row) ? [{ ...change, ...(instead && { closed: instead }) }] : []
    })
    count += (await ledger.stage({ ...place, changes: released })).staged
  }
  return count
}

/**
 * Whose changes are kept in a folder, and since when.
 * @throws {ChangeError}
 */
export async function readBegin(folder: string): Promise<Begin['begin']> {
  const path = join(folder, names.changes)
  const input = createReadStream(path)
  try {
    for await (const text of createInterface({ input })) return (JSON.parse(text) as Begin).begin
  } catch (cause) {
    throw runFilesLost({ path, cause })
  } finally {
    input.destroy()
  }
  throw runFilesLost({ path })
}

/** The kept changes, with what was decided on them. */
async function* readKeptChanges(folder: string): AsyncGenerator<NewChange[]> {
  const path = join(folder, names.changes)
  const decided = new Map(await readJson<[number, Decided][]>(join(folder, names.decided)))
  let read = 0
  let end: number | undefined
  try {
    for await (const batch of readBatches(path, (last) => ({ end } = last))) {
      read += batch.length
      yield batch.map((change) => ({ ...change, ...decided.get(change.row) }))
    }
  } catch (cause) {
    const isLost = cause instanceof SyntaxError || isSystemError(cause, 'ENOENT')
    throw isLost ? runFilesLost({ path, cause }) : cause
  }
  if (end !== read) throw runFilesLost({ path })
}

async function* readBatches(path: string, onEnd?: (end: End) => void): AsyncGenerator<NewChange[]> {
  const input = createReadStream(path)
  let batch: NewChange[] = []
  let length = 0
  try {
    for await (const text of createInterface({ input, crlfDelay: Infinity })) {
      const line = JSON.parse(text) as NewChange | Begin | End
      if ('begin' in line) continue
      if ('end' in line) {
        onEnd?.(line)
        continue
      }
      batch.push(line)
      length += text.length
      if (batch.length < batchRows && length < batchLength) continue
      yield batch
      batch = []
      length = 0
    }
  } finally {
    input.destroy()
  }
  if (batch.length > 0) yield batch
}
