import type { Command } from 'commander'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { type FetchInput, fetchInput } from '../../core/exports/input.ts'
import { documentResources } from '../../core/billing/resources/lists.ts'
import { FileRefusal } from '../../core/imports/errors.ts'
import { idRule, isId, openIdColumn } from '../../core/imports/read-ids.ts'
import { uploadIds } from '../runs/upload-ids.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError, UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { checkReading } from './export.ts'
import {
  addExamples,
  addInputArgument,
  addInputOptions,
  addServerOptions,
  callersPath,
  inputOf,
  toServer,
  type ServerOptions,
} from './options.ts'

type Documents = FetchInput['documents']

export function configure(command: Command, terminal: Terminal): void {
  addInputArgument(command, fetchInput, '<documents>')
  command.argument('<ids or file...>', 'ids, or a CSV file with a column of them')
  addInputOptions(command, fetchInput)
  addServerOptions(command).action(async (documents: Documents, names: string[], typed: ServerOptions) => {
    const server = toServer(typed)
    const { out, idColumn, ...options } = inputOf(fetchInput, typed)
    const fields = { ...options, ...(out !== undefined && { out: callersPath(out) }) }
    const settings = processSettings()
    await checkReading({ ...fields, resources: [documentResources[documents]], settings, ...server })
    const file = await findFile({ names, column: idColumn })
    if (file === undefined) checkIds(names)
    else await checkFile(file)
    // Copies the file to the data folder, where the worker finds it, only after all checks.
    const ids =
      file === undefined
        ? { ids: names }
        : {
            file: await uploadIds({ settings, path: file.path }),
            ...(idColumn !== undefined && { idColumn }),
          }
    const input: FetchInput = { ...fields, documents, ...ids }
    // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
    const { runFetch } = await import('../runs/run-export.ts')
    await runFetch({ settings, terminal, input, ...server })
  })
  addExamples(command, 'run', {
    'fetch creditnotes 501 502': 'two documents to CSV',
    'fetch cancellations ids.csv --id-column cancellation_id --to duckdb': 'the ids of a file, to DuckDB',
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
    throw error instanceof FileRefusal ? new RefusedError(error.message, { cause: error }) : error
  }
}
