import type { Command } from 'commander'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { allowedRoot } from '../../core/storage/inside.ts'
import {
  checkExport,
  checkFetch,
  type ExportInput,
  exportInput,
  type FetchInput,
  fetchInput,
  publishAgainInput,
} from '../../core/exports/input.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { newestRun, type RunPlaces, sharedFolder } from '../runs/run-files.ts'
import {
  addExamples,
  addInputArgument,
  addInputOptions,
  addOtherFields,
  addServerOptions,
  callersPath,
  inputOf,
  loadJobs,
  processSettings,
  type ServerOptions,
  toServer,
} from './options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { idRule, isId, openIdColumn } from '../../core/imports/read-ids.ts'
import { refuseFile, RefusedError, UsageError } from '../terminal/failures.ts'
import { prepareDataFolder } from '../../worker/data-folder.ts'

export function configureExport(command: Command, terminal: Terminal): void {
  addInputArgument(command, exportInput, '[resources...]')
  addOtherFields(addInputOptions(command, exportInput), exportInput)
  addServerOptions(command).action(async (resources: ExportInput['resources'] & {}, typed: ServerOptions) => {
    const server = toServer(typed)
    const { out, ...options } = inputOf(exportInput, typed)
    const input: ExportInput = {
      ...options,
      ...(resources.length > 0 && { resources }),
      ...(out !== undefined && { out: callersPath(out) }),
    }
    const settings = processSettings()
    checkExport(input, hashKeyOf({ settings, ...server }))
    await checkOut(input.out, { settings, ...server })
    const { runExport } = await loadJobs()
    await runExport({ settings, terminal, input, ...server })
  })
  addExamples(command, 'run', {
    'export --local': 'all lists to CSV, with a Temporal server of its own',
    'export customers --to duckdb,parquet': 'one list to two destinations',
    'export subscriptions --to postgres --mode incremental': 'what changed since the last proven export',
  })
}

/** Publishes an export again from its kept parts, without any request to the service. */
export function configurePublish(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'name of the export, or a workflow id for its newest run')
  addInputOptions(command, publishAgainInput)
  addServerOptions(command).action(async (name: string, typed: ServerOptions) => {
    const server = toServer(typed)
    const settings = processSettings()
    const run = await newestRun({ places: settings, run: name, terminal })
    const input = { ...inputOf(publishAgainInput, typed), run }
    const { runPublish } = await loadJobs()
    await runPublish({ settings, terminal, input, ...server })
  })
  addExamples(command, 'run', {
    'run publish export-all-1f0c2b7a90 --to postgres': 'publish to another destination',
    'run publish export-all-1f0c2b7a90 --max-deletes all': 'accept the deletes that the export held back',
  })
}

/** Another worker has its own folders, and checks them itself. */
async function checkOut(out: string | undefined, of: { settings: Settings; local: boolean }): Promise<void> {
  if (of.local && out !== undefined) await allowedRoot({ ...of.settings, out })
}

/** Undefined for a key that only the worker has. */
const hashKeyOf = ({ settings, local }: { settings: Settings; local: boolean }) =>
  local ? (settings.hashKey ?? '') : undefined

type Documents = FetchInput['documents']

export function configureFetch(command: Command, terminal: Terminal): void {
  addInputArgument(command, fetchInput, '<documents>')
  command.argument('<ids or file...>', 'ids, or a CSV file with a column of them')
  addOtherFields(addInputOptions(command, fetchInput), fetchInput)
  addServerOptions(command).action(async (documents: Documents, names: string[], typed: ServerOptions) => {
    const server = toServer(typed)
    const { out, idColumn, ...options } = inputOf(fetchInput, typed)
    const fields = { ...options, ...(out !== undefined && { out: callersPath(out) }) }
    const settings = processSettings()
    checkFetch({ ...fields, documents }, hashKeyOf({ settings, ...server }))
    await checkOut(fields.out, { settings, ...server })
    const file = await findFile({ names, column: idColumn })
    if (file === undefined) checkIds(names)
    else await checkFile(file)
    // Copies the file to the data folder, where the worker finds it, only after all checks.
    const ids =
      file === undefined
        ? { ids: names }
        : {
            file: await storeIds({ settings, path: file.path }),
            ...(idColumn !== undefined && { idColumn }),
          }
    const input: FetchInput = { ...fields, documents, ...ids }
    const { runFetch } = await loadJobs()
    await runFetch({ settings, terminal, input, ...server })
  })
  addExamples(command, 'run', {
    'fetch creditnotes 501 502': 'two documents to CSV',
    'fetch cancellations ids.csv --input idColumn=cancellation_id --to duckdb':
      'the ids of a file, to DuckDB',
  })
}

interface IdFile {
  path: string
  column: string | undefined
}

/** The file of ids, if the only argument is a file or cannot be anything else. */
async function findFile(of: { names: string[]; column: string | undefined }): Promise<IdFile | undefined> {
  const { names, column } = of
  const [name = ''] = names
  const path = callersPath(name)
  const found = await stat(path).catch(() => undefined)
  const isMeant = found?.isFile() === true || /[./\\]/.test(name) || column !== undefined
  if (!isMeant) return undefined
  if (found === undefined)
    throw new RefusedError(`There is no file ${name}.`, { hint: 'Name a CSV file that exists, or ids.' })
  if (!found.isFile()) throw new RefusedError(`${name} is not a file.`, { hint: 'Name a CSV file, or ids.' })
  if (names.length > 1) throw new UsageError(`Name one file or ids, not both: ${basename(name)} is a file.`)
  return { path, column }
}

function checkIds(names: readonly string[]): void {
  const wrong = names.filter((name) => !isId(name))
  if (wrong.length > 0) throw new UsageError(`${wrong.join(', ')}: not valid; ${idRule}.`)
}

/** Reads the file once in the same way as the run, so that an invalid cell is reported before anything is started. */
async function checkFile({ path, column }: IdFile): Promise<void> {
  try {
    const { ids } = await openIdColumn({ path, column })
    // Only the errors that it throws matter.
    for await (const _ of ids());
  } catch (error) {
    refuseFile(error)
  }
}

/**
 * Stores a file of ids as the input of an import is stored, named after its content: the same file gives the same input,
 * and the same command resumes its unfinished run. Returns its path in the data folder.
 */
async function storeIds({ settings, path }: { settings: RunPlaces; path: string }): Promise<string> {
  const { dataDir } = settings
  await prepareDataFolder(dataDir)
  // Only now: it loads the reader of workbooks.
  const { prepareInput, shareInput } = await import('../../core/imports/stored-input.ts')
  await using prepared = await prepareInput({ dataDir, files: { file: path, mapping: {} } })
  const stored = await prepared.keep()
  await shareInput({ ...stored, dataDir, shared: sharedFolder(settings) })
  return stored.file
}
