import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import type { ChangeState } from '../../../core/state/schema.ts'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createChangesFile } from '../../../core/changes/staged-changes.ts'
import { type CheckOptions, checkFile, closedBy } from '../../../core/imports/check.ts'
import { type InputFiles, prepareInput } from '../../../core/imports/stored-input.ts'
import type { ImportFile } from '../../../core/imports/open-file.ts'
import { toSentence } from '../../../core/imports/problems.ts'
import { refuseInvalid } from '../../../core/imports/staging.ts'
import type { NewChange } from '../../../core/state/ledger/stage.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

export { temporaryFolder } from '../state/temporary-folder.ts'

/** A file of that content in a folder of its own. */
export async function fileOf(content: string | Uint8Array, name = 'file.csv'): Promise<string> {
  const path = join(await temporaryFolder(), name)
  await writeFile(path, content)
  return path
}

/** What is wrong with a file, a sentence each. */
export const problemsOf = async (options: CheckOptions): Promise<string[]> =>
  (await checkFile(options)).problems.map(toSentence)

/** The run of changes that are never staged. */
export const ofRun = { run: 'run', workspace: 'w', mode: 'live', kind: 'create-product' } as const

/** The changes of a file, checked first as always, with why they are not sent. */
export async function stage(options: ImportFile, onInvalid: 'stop' | 'skip' = 'stop'): Promise<NewChange[]> {
  await using changes = await createChangesFile(await temporaryFolder(), ofRun)
  const check = await checkFile({ ...options, changes })
  refuseInvalid(check, onInvalid)
  const rows = (await Array.fromAsync(changes.batches())).flat()
  return rows.map((change) => {
    const closed = closedBy(check, change)
    return { ...change, ...(closed && { closed }) }
  })
}

/** The bodies of a file's changes, as JSON text: numbers digit for digit. */
export const bodiesOf = async (options: ImportFile): Promise<string[]> =>
  (await stage(options)).map(({ body }) => body)

/** Stores the files of an import as it does; gives the paths that it reads. */
export async function storeInput(files: InputFiles): Promise<{ path: string; mapping: string }> {
  const dataDir = await temporaryFolder()
  await using prepared = await prepareInput({ files, dataDir })
  const { file, mapping } = await prepared.keep()
  return { path: join(dataDir, file), mapping: join(dataDir, mapping) }
}

/** A change of a file in the ledger, as far as the result sheets have it. */
export const rowOf = (row: number, state: ChangeState, more: Partial<LedgerRow> = {}): LedgerRow =>
  ({
    row,
    state,
    outcome: null,
    answerId: null,
    error: null,
    sentAt: null,
    body: '{}',
    resolvedBy: null,
    resolvedWhy: null,
    ...more,
  }) as LedgerRow
