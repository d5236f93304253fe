import { mkdir, rm } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { randomUUID } from 'node:crypto'
import { InvalidFileError, MappingError, UnreadableFileError } from '../../core/imports/errors.ts'
import { RefusedError } from '../terminal/failures.ts'
import { copyInput, fingerprintOf } from '../../core/imports/upload.ts'
import { uploadPrefix, type ImportPlan } from '../../core/imports/plan.ts'
import { readPlan, readRunNotes } from '../../core/imports/run-files.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { ImportOrder } from './import-request.ts'
import { importFolder } from './run-folders.ts'

export interface UploadedImport {
  /** The name and state of the run that the request belongs to. */
  run: string
  before: 'nothing' | 'unfinished' | 'finished'
  /** The input; its paths are relative to the data folder. */
  input: { file: string; lines?: string; mapping: string }
  remove(): Promise<void>
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
  const folder = join(dataDir, 'imports', `${uploadPrefix}${randomUUID()}`)
  await mkdir(folder, { recursive: true })
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const { kind, columns, sendAgain } = order
    const copied = await copyInput({ files: order, to: folder }).catch((error: unknown) => {
      throw toRefusal(error)
    })
    const mode = billing.testMode ? 'test' : 'live'
    const reading = { kind, columns, sendAgain, workspace: billing.workspace, mode } as const
    const fingerprint = await fingerprintOf({ folder, copied, ...reading })
    const at = (name: string) => relative(dataDir, join(folder, name))
    return {
      ...(await findRun({ dataDir, order, fingerprint, mode })),
      input: {
        file: at(copied.file),
        mapping: at(copied.mapping),
        ...(copied.lines !== undefined && { lines: at(copied.lines) }),
      },
      remove,
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
  dataDir: string
  order: ImportOrder
  fingerprint: string
  mode: 'live' | 'test'
}): Promise<Pick<UploadedImport, 'run' | 'before'>> {
  const { dataDir, order, fingerprint, mode } = options
  const name = [order.kind, ...(mode === 'test' ? ['test'] : []), toWord(order.file)].join('-')
  if (order.dryRun) return { run: `dry-run-${name}-${toTime(new Date())}`, before: 'nothing' }
  for (let use = 1; ; use += 1) {
    const run = `import-${name}-${fingerprint.slice(0, 8)}${use === 1 ? '' : `-${use}`}`
    const folder = importFolder({ dataDir, run })
    const plan: ImportPlan | undefined = await readPlan(folder)
    if (plan === undefined) return { run, before: 'nothing' }
    const { ended } = await readRunNotes(folder)
    if (ended?.how !== 'finished') return { run, before: 'unfinished' }
    // The remaining rows become a run of their own.
    if (order.done !== 'skip') return { run, before: 'finished' }
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
