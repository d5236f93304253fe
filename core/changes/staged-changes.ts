import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { KeySpace } from '../state/ledger/key-queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { StageResult } from '../state/ledger/stage.ts'
import { parseBody } from './body.ts'
import type { ChangeKind } from './change-kind.ts'
import { replaceInPieces } from '../storage/durable.ts'
import { RunFilesLostError } from './errors.ts'
import { changeRunFiles } from '../runs/run-files.ts'
import { type ChangeToStage, stageChanges } from './stage-changes.ts'

/** A change in the file; its body is text, so that numbers keep their digits. */
type Line = Omit<ChangeToStage, 'body'> & { body: string }

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

/** Changes staged in one write. */
const batchRows = 1_000

/**
 * Keeps the changes of a run in its folder, durably, before any of them is staged: if the ledger loses them, they are
 * staged again from there. Returns their number.
 */
export async function keepStagedChanges({
  folder,
  changes,
}: {
  folder: string
  changes: AsyncIterable<readonly ChangeToStage[]>
}): Promise<number> {
  const path = join(folder, changeRunFiles.stagedChanges)
  return await replaceInPieces(path, async (file) => {
    let kept = 0
    for await (const batch of changes) {
      const lines = batch.map(({ body, ...rest }): Line => ({ ...rest, body: JSON.stringify(body) }))
      await file.appendFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
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
  signal,
}: {
  ledger: Ledger
  run: string
  space: Omit<KeySpace, 'kind'>
  kind: ChangeKind
  folder: string
  onHeld: OnKeyHeld
  signal?: AbortSignal
}): Promise<void> {
  const { workspace, mode } = space
  const place = { ledger, run, kind, workspace, mode }
  for await (const changes of readKeptChanges(folder)) {
    signal?.throwIfAborted()
    const { held } = await stageChanges({ ...place, changes })
    if (held.length === 0) continue
    const closed = await onHeld(held)
    const rows = new Set(held.map(({ row }) => row))
    const again = changes.flatMap((change) => {
      const instead = closed.get(change.row) ?? change.closed
      return rows.has(change.row) ? [{ ...change, ...(instead && { closed: instead }) }] : []
    })
    await stageChanges({ ...place, changes: again })
  }
}

async function* readKeptChanges(folder: string): AsyncGenerator<ChangeToStage[]> {
  const path = join(folder, changeRunFiles.stagedChanges)
  const input = createReadStream(path)
  let batch: ChangeToStage[] = []
  let read = 0
  let end: number | undefined
  try {
    for await (const text of createInterface({ input, crlfDelay: Infinity })) {
      const line = JSON.parse(text) as Line | End
      if ('end' in line) {
        ;({ end } = line)
        continue
      }
      const { body, ...rest } = line
      batch.push({ ...rest, body: parseBody({ body }) })
      read += 1
      if (batch.length < batchRows) continue
      yield batch
      batch = []
    }
  } catch (cause) {
    const isLost = cause instanceof SyntaxError || (cause as NodeJS.ErrnoException).code === 'ENOENT'
    throw isLost ? new RunFilesLostError({ path, cause }) : cause
  } finally {
    input.destroy()
  }
  if (end !== read) throw new RunFilesLostError({ path })
  if (batch.length > 0) yield batch
}
