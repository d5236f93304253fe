import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { constants, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { syncPath } from '../storage/durable.ts'
import { UnreadableFileError } from './errors.ts'
import { copyName, workbookRows } from './file-name.ts'
import { refuseLarge } from './file-size.ts'
import type { ImportKindName } from './kinds.ts'
import { conventionsIn, type Mapping } from './mapping/mapping.ts'
import { type ImportPlan, runFiles } from './plan.ts'
import { createColumnUses, type UsesOptions } from './column-uses.ts'
import { convertWorkbook, isWorkbook, type SheetChoice } from './workbook/convert.ts'
import { isSystemError } from '../storage/system-errors.ts'

/** The files that an import reads, including the lookup files of the mapping. */
export interface InputFiles extends UsesOptions {
  file: string
  /** With absolute paths to its lookup files. */
  mapping: Mapping
}

/** The same files in a private folder; names are relative to it. */
export interface CopiedInput {
  file: string
  mapping: string
  /** Every file, in a fixed order. */
  all: string[]
}

/**
 * Copies the files of an import durably into one folder, where nobody changes them; of a workbook, the rows
 * of its sheet. Each file keeps its name, which messages show, in a folder of its own: no outside name
 * decides where anything is written.
 *
 * @throws {UnreadableFileError} a file is too large, or a damaged workbook
 * @throws {MappingError} a workbook has no such sheet
 */
export async function copyInput({ files, to }: { files: InputFiles; to: string }): Promise<CopiedInput> {
  const { lookups, ...mapping } = files.mapping
  const { sheet, headerRow, skipRows = [], dateCells } = mapping
  const conventions = conventionsIn(mapping)
  const hiddenRows = skipRows.includes('hidden') ? ('skip' as const) : ('refuse' as const)
  const uses = createColumnUses(files)
  const readingOf = {
    file: { sheet, headerRow, skipRows, hiddenRows, dateCells, usesOf: uses.file },
    lookup: { headerRow: 0, hiddenRows: 'read', usesOf: uses.lookup },
  } as const
  const sheets: SheetChoice[] = []
  const copy = async (path: string, role: keyof typeof readingOf, folder: string = role) => {
    await refuseLarge(path, role === 'lookup' ? 'lookup' : 'table')
    await mkdir(join(to, folder), { recursive: true })
    const name = join(folder, copyName(path))
    if (await isWorkbook(path)) {
      const rows = name + workbookRows
      sheets.push(await convertWorkbook(path, join(to, rows), { role, conventions, ...readingOf[role] }))
      return rows
    }
    await copyFile(path, join(to, name), constants.COPYFILE_EXCL)
    return name
  }
  const file = await copy(files.file, 'file')
  const copiedLookups: Record<string, string> = {}
  for (const [index, [field, path]] of Object.entries(lookups ?? {}).entries())
    copiedLookups[field] = await copy(path, 'lookup', join('lookups', String(index + 1)))
  const stored: Mapping = {
    ...mapping,
    ...(lookups !== undefined && { lookups: copiedLookups }),
    ...(sheets.length > 0 && { sheets }),
  }
  await writeFile(join(to, mappingFile), JSON.stringify(stored), { flag: 'wx' })
  const copied = toCopied(file, stored)
  // Fsynced, because the durable plan must not name a copy that a power failure truncated.
  const folders = copied.all.flatMap((name) => [dirname(name), dirname(dirname(name))])
  for (const name of new Set([...copied.all, ...folders, '.'])) await syncPath(join(to, name))
  return copied
}

const mappingFile = 'mapping.json'

const toCopied = (file: string, { lookups = {} }: Mapping): CopiedInput => ({
  file,
  mapping: mappingFile,
  all: [file, mappingFile, ...Object.values(lookups)],
})

/** Equal only for the same rows read the same way: such an import resumes instead of starting over. */
export async function fingerprintOf({
  folder,
  copied,
  ...reading
}: {
  folder: string
  copied: CopiedInput
  kind: ImportKindName
  workspace: string
  mode: 'live' | 'test'
  columns: readonly string[] | undefined
  sendAgain: readonly number[]
}): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(reading, Object.keys(reading).toSorted()))
  for (const name of copied.all) {
    hash.update(`\n${name}\n`)
    for await (const chunk of createReadStream(join(folder, name)) as AsyncIterable<Buffer>)
      hash.update(chunk)
  }
  return hash.digest('hex').slice(0, 32)
}

type RunInput = Pick<
  ImportPlan,
  'folder' | 'fingerprint' | 'kind' | 'file' | 'columns' | 'sendAgain' | 'identity'
>

/** Whether the copy in a run's folder still has the content it had when the run started. */
export async function isCopyIntact({ plan, dataDir }: { plan: RunInput; dataDir: string }): Promise<boolean> {
  const { kind, columns, sendAgain, identity, file } = plan
  const { workspace, mode } = identity
  const input = join(plan.folder, runFiles.input)
  const folder = join(dataDir, input)
  try {
    const mapping = JSON.parse(await readFile(join(folder, mappingFile), 'utf8')) as Mapping
    const copied = toCopied(relative(input, file), mapping)
    const reading = { kind, columns, sendAgain, workspace, mode }
    return (await fingerprintOf({ folder, copied, ...reading })) === plan.fingerprint
  } catch (error) {
    if (error instanceof SyntaxError || isSystemError(error, 'ENOENT')) return false
    throw error
  }
}

/** @throws {UnreadableFileError} the copy in the run's folder is damaged */
export async function refuseDamagedCopy(options: { plan: RunInput; dataDir: string }): Promise<void> {
  if (await isCopyIntact(options)) return
  const path = join(options.dataDir, options.plan.folder, runFiles.input)
  throw new UnreadableFileError(
    `The run's copy of its file, in ${path}, is damaged: it was truncated or changed after the run started. Nothing ` +
      'was sent. Start the same import again with the original file.',
  )
}
