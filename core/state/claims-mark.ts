import { mkdir, open, type FileHandle, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { SharedFolder } from '../storage/cached.ts'
import { syncPath } from '../storage/durable.ts'
import { orMissing } from '../storage/system-errors.ts'
import { OldLedgerError, StateUnreadableError } from './errors.ts'
import type { Ledger } from './ledger/ledger.ts'

/**
 * How many claims a ledger has made in its life, beside it. A claim raises it after its commit and before its request leaves.
 * So a ledger that knows fewer was restored from a backup, and one whose process was killed at any moment knows as many or
 * more.
 */
export interface ClaimsMark {
  read(): Promise<number>
  /** Resolves when it is on the disk. It never goes down. */
  raise(claims: number): Promise<void>
}

const fileName = 'state.claims'

/** Always of the same length and in one block of the disk, so that it is replaced whole. */
const toText = (claims: number) => `${String(claims).padStart(16)}\n`

/** The mark of `state.db`, which each claim raises. Claims that arrive while the disk is busy share its next write. */
export function createFolderMark(folder: string): ClaimsMark & AsyncDisposable {
  const path = join(folder, fileName)
  let file: Promise<FileHandle> | undefined
  let highest = 0
  let next: Promise<void> | undefined
  let last: Promise<void> = Promise.resolve()
  const read = async () => {
    const text = (await orMissing(readFile(path, 'utf8'))) ?? ''
    if (text !== '' && !/^ *\d+\n$/.test(text))
      throw new StateUnreadableError({ place: path, cause: new Error('it has no number') })
    return Number(text)
  }
  const create = async () => {
    const before = await read()
    highest = Math.max(highest, before)
    await mkdir(dirname(path), { recursive: true })
    // A file opened to append is never truncated, and one opened to read and write must exist.
    await (await open(path, 'a')).close()
    await syncPath(dirname(path))
    return await open(path, 'r+')
  }
  const flush = async () => {
    next = undefined
    file ??= create()
    const opened = await file.catch((error: unknown) => {
      file = undefined
      throw error
    })
    await opened.write(toText(highest), 0)
    await opened.datasync()
  }
  return {
    read,
    raise(claims) {
      highest = Math.max(highest, claims)
      // After a failed write the next one tries again; each caller gets the result of its own write.
      last = next ??= last.catch(() => undefined).then(flush)
      return last
    },
    async [Symbol.asyncDispose]() {
      await last.catch(() => undefined)
      await (await file?.catch(() => undefined))?.close()
    },
  }
}

/**
 * The mark of a state on PostgreSQL, in the bucket of its workers; undefined for `state.db`. A segment of sending
 * raises it now and then and at its end, because Temporal is told of the claims of a run in between.
 */
export const sharedMark = ({
  shared,
  dataDir,
}: {
  shared: SharedFolder
  dataDir: string
}): ClaimsMark | undefined => {
  if (!shared.isShared) return undefined
  const file = join(dataDir, fileName)
  return {
    read: async () => Number((await shared.read(file)) ?? 0),
    raise: (claims) => shared.update(file, (text) => toText(Math.max(claims, Number(text ?? 0)))),
  }
}

/** @throws {OldLedgerError} the ledger knows fewer claims than its mark */
export async function refuseOlderThanMark({
  ledger,
  mark,
}: {
  ledger: Pick<Ledger, 'claimed'>
  mark: ClaimsMark | undefined
}): Promise<void> {
  if (mark === undefined) return
  // First: a claim that is made meanwhile raises both.
  const sent = await mark.read()
  const claims = await ledger.claimed()
  if (claims < sent) throw new OldLedgerError({ lacks: `${sent - claims} of ${sent} claims` })
}
