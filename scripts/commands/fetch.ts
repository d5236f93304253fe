import type { Command } from 'commander'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { FetchInput } from '../../core/exports/input.ts'
import { documentNames, documentResources } from '../../core/billing/resources/lists.ts'
import { allowedRoot } from '../../core/destinations/allowed-root.ts'
import { InvalidFileError, MappingError, UnreadableFileError } from '../../core/imports/errors.ts'
import { idRule, isId, openIdColumn } from '../../core/imports/read-ids.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import { uploadIds } from '../runs/upload-ids.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError, UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addExamples,
  addReadOptions,
  callersPath,
  choice,
  toReadFields,
  toServer,
  type ReadOptions,
} from './options.ts'

interface Options extends ReadOptions {
  column?: string
}

interface Call {
  documents: string
  names: string[]
  options: Options
  terminal: Terminal
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<documents>', documentNames.join(', '))
    .argument('<ids or file...>', 'ids, or a CSV file with a column of them')
    .option('--column <name>', 'column of the file that holds the ids (default: id)')
  addReadOptions(command).action((documents: string, names: string[], options: Options) =>
    act({ documents, names, options, terminal }),
  )
  addExamples(command, 'run', {
    'fetch creditnotes 501 502': 'two documents to CSV',
    'fetch cancellations ids.csv --column cancellation_id --to duckdb': 'the ids of a file, to DuckDB',
  })
}

async function act(call: Call): Promise<void> {
  const { options, terminal } = call
  const server = toServer(options)
  const documents = choice('document type', documentNames)(call.documents)
  const fields = toReadFields(options)
  const settings = processSettings()
  // Another worker has its own key and folders, and checks both itself.
  const hashKey = server.local ? (settings.hashKey ?? '') : 'of the worker'
  const { exclude = [], hash = [], out } = fields
  checkPrivacy([documentResources[documents]], { exclude, hash, hashKey })
  if (server.local && out !== undefined) await allowedRoot({ ...settings, out })
  const file = await findFile(call)
  if (file === undefined) checkIds(call)
  else await checkFile(file)
  // Copies the file to the data folder, where the worker finds it, only after all checks.
  const asked =
    file === undefined
      ? { ids: call.names }
      : {
          file: await uploadIds({ settings, path: file.path }),
          ...(file.column !== undefined && { column: file.column }),
        }
  const input: FetchInput = { documents, ...asked, ...fields }
  // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
  const { runFetch } = await import('../runs/run-export.ts')
  await runFetch({ settings, terminal, input, ...server })
}

interface IdFile {
  path: string
  column: string | undefined
}

/** The file of ids, if the only argument is a file or cannot be anything else. */
async function findFile({ names, options }: Call): Promise<IdFile | undefined> {
  const [name = ''] = names
  const path = callersPath(name)
  const found = await stat(path).catch(() => undefined)
  const isMeant = found?.isFile() === true || /[./\\]/.test(name) || options.column !== undefined
  if (!isMeant) return undefined
  if (found === undefined)
    throw new RefusedError(`There is no file ${name}.`, { hint: 'Name a CSV file that exists, or ids.' })
  if (!found.isFile()) throw new RefusedError(`${name} is not a file.`, { hint: 'Name a CSV file, or ids.' })
  if (names.length > 1) throw new UsageError(`Name one file or ids, not both: ${basename(name)} is a file.`)
  return { path, column: options.column }
}

function checkIds({ names }: Call): void {
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
    const isOfFile =
      error instanceof UnreadableFileError ||
      error instanceof MappingError ||
      error instanceof InvalidFileError
    throw isOfFile ? new RefusedError(error.message, { cause: error }) : error
  }
}
