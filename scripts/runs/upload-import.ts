import { mkdir, rm } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { randomUUID } from 'node:crypto'
import { InvalidFileError, MappingError, UnreadableFileError } from '../../core/imports/errors.ts'
import { RefusedError } from '../terminal/failures.ts'
import { copyInput, fingerprintOf } from '../../core/imports/upload.ts'
import { uploadPrefix } from '../../core/imports/plan.ts'
import { readRunNotes } from '../../core/imports/run-files.ts'
import { removeIfPermitted } from '../../core/storage/file-store.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { ImportOrder } from './import-request.ts'
import { sharedFiles } from './fetch-run.ts'
import { planOf } from './saved-plan.ts'
import { importFolder } from './run-folders.ts'

export interface UploadedImport {
  /** The name and state of the run that the request belongs to. */
  run: string
  before: 'nothing' | 'unfinished' | 'finished'
  /** The input; its paths are relative to the data folder. */
  input: { file: string; mapping: string }
  /** Makes the files be there for workers on other machines. */
  handOver(): Promise<void>
  /** Removes the copy, and unless the run has it by now, what was handed over. */
  remove(options?: { isHandedOver?: boolean }): Promise<void>
}

/**
 * Copies the requested files into the data folder and finds their run: the same rows read in the same way always
 * have the same run, so the same command resumes it.
 */
export async function uploadImport({
  settings,
  order,
}: {
  settings: Settings
  order: ImportOrder
}): Promise<UploadedImport> {
  const { dataDir, billing } = settings
  const path = `imports/${uploadPrefix}${randomUUID()}`
  const folder = join(dataDir, path)
  const store = sharedFiles(settings)
  await mkdir(folder, { recursive: true })
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const { kind, columns, sendAgain = [] } = order.input
    const copied = await copyInput({ files: { ...order, kind, columns }, to: folder }).catch(
      (error: unknown) => {
        throw toRefusal(error)
      },
    )
    const mode = billing.testMode ? 'test' : 'live'
    const reading = { kind, columns, sendAgain, workspace: billing.workspace, mode } as const
    const fingerprint = await fingerprintOf({ folder, copied, ...reading })
    const at = (name: string) => relative(dataDir, join(folder, name))
    return {
      ...(await findRun({ settings, order, fingerprint, mode })),
      input: {
        file: at(copied.file),
        mapping: at(copied.mapping),
      },
      async handOver() {
        if (store === undefined) return
        for (const name of copied.all)
          await store.put(`${path}/${name.split(sep).join('/')}`, join(folder, name))
      },
      async remove({ isHandedOver = false } = {}) {
        await remove()
        if (store === undefined || isHandedOver) return
        for (const stored of await store.list(path)) await removeIfPermitted(store, stored.path)
      },
    }
  } catch (error) {
    await remove()
    throw error
  }
}

/** What a person does about a file that cannot be opened. */
const unreadable: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist. Check the path.',
  EACCES: 'may not be read by this user. Check its permissions.',
  EISDIR: 'is a folder. Name the file in it.',
}

export function toRefusal(error: unknown): unknown {
  const { code, path } = error as NodeJS.ErrnoException
  const problem = unreadable[code ?? '']
  if (problem !== undefined) return new RefusedError(`${path} ${problem}`, { cause: error })
  const isOurs =
    error instanceof UnreadableFileError || error instanceof MappingError || error instanceof InvalidFileError
  return isOurs ? new RefusedError(error.message, { cause: error }) : error
}

async function findRun(options: {
  settings: Settings
  order: ImportOrder
  fingerprint: string
  mode: 'live' | 'test'
}): Promise<Pick<UploadedImport, 'run' | 'before'>> {
  const { settings, order, fingerprint, mode } = options
  const name = [order.input.kind, ...(mode === 'test' ? ['test'] : []), toWord(order.file)].join('-')
  if (order.input.dryRun) return { run: `dry-run-${name}-${toTime(new Date())}`, before: 'nothing' }
  for (let use = 1; ; use += 1) {
    const run = `import-${name}-${fingerprint.slice(0, 8)}${use === 1 ? '' : `-${use}`}`
    const plan = await planOf(settings, run)
    if (plan === undefined) return { run, before: 'nothing' }
    const { ended } = await readRunNotes(importFolder({ dataDir: settings.dataDir, run }))
    if (ended?.how !== 'finished') return { run, before: 'unfinished' }
    // The remaining rows become a run of their own.
    if (order.input.done !== 'skip') return { run, before: 'finished' }
  }
}

const toWord = (file: string) =>
  basename(file)
    .replace(/\.[^.]*$/, '')
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .toLowerCase()
    .slice(0, 40)

const toTime = (at: Date) => at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
