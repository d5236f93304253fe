import { basename, join } from 'node:path'
import { FileRefusal } from '../../core/imports/errors.ts'
import { RefusedError } from '../terminal/failures.ts'
import {
  type PreparedInput,
  type StoredInput,
  filesOf,
  prepareInput,
} from '../../core/imports/stored-input.ts'
import { fingerprintOf } from '../../core/imports/open.ts'
import type { ImportInput } from '../../core/imports/input.ts'
import type { Mapping } from '../../core/imports/mapping/mapping.ts'
import { type Origin, readRunNotes } from '../../core/imports/run-files.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { sharedFiles } from './fetch-run.ts'
import { planOf } from './saved-plan.ts'
import { importFolder } from './run-folders.ts'

/** An import as the command line requests it, parsed and checked. */
export interface ImportOrder extends Origin {
  mapping: Mapping
  /** What the workflow's input has besides its files. */
  input: Omit<ImportInput, 'file' | 'mapping' | 'identity'>
  yes: boolean
  local: boolean
  detach: boolean
}

/** An import whose files were copied, which are not stored before it starts. */
export interface UploadedImport {
  /** The name and state of the run that the request belongs to. */
  run: string
  before: 'nothing' | 'unfinished' | 'finished'
  prepared: PreparedInput
}

/**
 * Copies the requested files into the data folder and finds their run: the same rows read in the same way always
 * have the same run, so the same command resumes it.
 */
export async function uploadImport(call: {
  settings: Settings
  order: ImportOrder
}): Promise<UploadedImport> {
  const { settings, order } = call
  const { dataDir, billing } = settings
  const { file, mapping, input } = order
  const files = { file, mapping, kind: input.kind, columns: input.columns }
  const prepared = await prepareInput({ dataDir, files }).catch((error: unknown) => {
    throw toRefusal(error)
  })
  const mode = billing.testMode ? 'test' : 'live'
  const { workspace } = billing
  const fingerprint = fingerprintOf({ ...input, workspace, mode, hash: prepared.hash })
  return { ...(await findRun({ settings, order, fingerprint, mode })), prepared }
}

/** Stores the input where workers find it, also those on other machines. */
export async function storeUpload({ prepared }: UploadedImport, settings: Settings): Promise<StoredInput> {
  const { dataDir } = settings
  const stored = await prepared.keep()
  const store = sharedFiles(settings)
  if (store !== undefined)
    for (const path of await filesOf({ dataDir, ...stored })) await store.put(path, join(dataDir, path))
  return stored
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
  return error instanceof FileRefusal ? new RefusedError(error.message, { cause: error }) : error
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
