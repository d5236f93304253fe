import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { KeySpace } from '../state/ledger/key-queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { NewChange, StageResult } from '../state/ledger/stage.ts'
import type { ChangeKind } from './change-kind.ts'
import { replaceInPieces } from '../storage/durable.ts'
import { RunFilesLostError } from './errors.ts'
import { changeRunFiles } from '../runs/run-files.ts'
import { type ChangeToStage, type KeyedChange, toNewChange } from './stage-changes.ts'
import { isSystemError } from '../storage/system-errors.ts'

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

/**
 * Keeps the changes of a run in its folder, durably, before any of them is staged: if the ledger loses them, they are
 * staged again from there. Returns their number.
 * @throws {BodyTooLargeError}
 */
export async function keepStagedChanges({
  folder,
  changes,
}: {
  folder: string
  changes: AsyncIterable<readonly KeyedChange[]>
}): Promise<number> {
  const path = join(folder, changeRunFiles.stagedChanges)
  return await replaceInPieces(path, async (file) => {
    let kept = 0
    for await (const batch of changes) {
      const lines = batch.map((change) => `${JSON.stringify(toNewChange(change))}\n`)
      await file.appendFile(lines.join(''))
      kept += batch.length
    }
    await file.appendFile(`${JSON.stringify({ end: kept } satisfies End)}\n`)
    return kept
  })
}

/**
 * Stages the changes kept in the run's folder; those already in the ledger are left as they are.
 * @throws {RunFilesLostError} if the file is missing or was cut short
 */
export async function stageKeptChanges({
  ledger,
  run,
  space,
  kind,
  folder,
  onHeld,
  restored,
  signal,
}: {
  ledger: Ledger
  run: string
  space: Omit<KeySpace, 'kind'>
  kind: ChangeKind
  folder: string
  onHeld: OnKeyHeld
  /** How often a row that the ledger has lost may have been sent, if it may. */
  restored?: (row: number) => NewChange['restored']
  signal?: AbortSignal
}): Promise<void> {
  const { workspace, mode } = space
  const place = { run, workspace, mode, kind: kind.name, repeats: kind.repeats }
  for await (const kept of readKeptChanges(folder)) {
    signal?.throwIfAborted()
    const changes =
      restored === undefined ? kept : kept.map((one) => ({ ...one, restored: restored(one.row) }))
    const { held } = await ledger.stage({ ...place, changes })
    if (held.length === 0) continue
    const closed = await onHeld(held)
    const rows = new Set(held.map(({ row }) => row))
    const again = changes.flatMap((change) => {
      const instead = closed.get(change.row) ?? change.closed
      return rows.has(change.row) ? [{ ...change, ...(instead && { closed: instead }) }] : []
    })
    await ledger.stage({ ...place, changes: again })
  }
}

async function* readKeptChanges(folder: string): AsyncGenerator<NewChange[]> {
  const path = join(folder, changeRunFiles.stagedChanges)
  const input = createReadStream(path)
  let batch: NewChange[] = []
  let length = 0
  let read = 0
  let end: number | undefined
  try {
    for await (const text of createInterface({ input, crlfDelay: Infinity })) {
      const line = JSON.parse(text) as NewChange | End
      if ('end' in line) {
        ;({ end } = line)
        continue
      }
      batch.push(line)
      length += text.length
      read += 1
      if (batch.length < batchRows && length < batchLength) continue
      yield batch
      batch = []
      length = 0
    }
  } catch (cause) {
    const isLost = cause instanceof SyntaxError || isSystemError(cause, 'ENOENT')
    throw isLost ? new RunFilesLostError({ path, cause }) : cause
  } finally {
    input.destroy()
  }
  if (end !== read) throw new RunFilesLostError({ path })
  if (batch.length > 0) yield batch
}
