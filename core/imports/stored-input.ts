import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, posix, relative } from 'node:path'
import type { FieldMeta } from '../billing/resources/fields.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { syncPath, temporaryFolder } from '../storage/durable.ts'
import { isSystemError } from '../storage/system-errors.ts'
import { comparableName } from './cells/refused.ts'
import { InvalidFile } from './errors.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { countMapped, mapColumns } from './mapping/columns.ts'
import { conventionsIn, type Mapping, type SheetChoice } from './mapping/mapping.ts'
import { inputsFolder, refuseMissing } from './run-files.ts'
import { copyName, refuseLarge, workbookRows } from './source-file.ts'
import { convertWorkbook, isWorkbook } from './workbook/convert.ts'
import type { ColumnUse } from './workbook/number-format.ts'

const mappingName = 'mapping.json'

/** The files of an input; their paths are relative to the data folder. */
export interface StoredInput {
  file: string
  mapping: string
}

/** The files that an import reads, with absolute paths, also to the lookup files of the mapping. */
export interface InputFiles {
  /** Default: the kind that has most of the file's columns. */
  kind?: ImportKindName | undefined
  file: string
  mapping: Mapping
  columns?: readonly string[] | undefined
}

/** A copy of an input that has no name yet: a file that is refused leaves nothing behind. */
export interface PreparedInput extends StoredInput, AsyncDisposable {
  hash: string
  /** Gives it its name, and returns its files there. */
  keep(): Promise<StoredInput>
}

/**
 * Copies the files of an import durably to where nobody changes them; of a workbook, the rows of its sheet. Each file
 * keeps its name, which messages show, in a folder of its own: no outside name decides where anything is written.
 *
 * @throws {InvalidFile} a file is too large, or a damaged workbook
 * @throws {InvalidMapping} a workbook has no such sheet
 */
export async function prepareInput(options: { files: InputFiles; dataDir: string }): Promise<PreparedInput> {
  const { files, dataDir } = options
  const inputs = join(dataDir, inputsFolder)
  const temporary = await temporaryFolder(inputs, '.new-')
  const folder = temporary.path
  const remove = () => temporary[Symbol.asyncDispose]()
  try {
    const { file, all } = await copyFiles(files, folder)
    const hash = await hashOf(folder, all)
    const at = (name: string) => ({ file: posix.join(name, file), mapping: posix.join(name, mappingName) })
    return {
      ...at(relative(dataDir, folder)),
      hash,
      async keep() {
        const stored = at(posix.join(inputsFolder, hash))
        if (!(await isIntact({ dataDir, ...stored }))) {
          await rm(join(inputs, hash), { recursive: true, force: true })
          await rename(folder, join(inputs, hash)).catch((error: unknown) => {
            // Another command has just stored the same input.
            if (!isSystemError(error, 'ENOTEMPTY')) throw error
          })
          await syncPath(inputs)
        }
        await remove()
        return stored
      },
      [Symbol.asyncDispose]: remove,
    }
  } catch (error) {
    await remove()
    throw error
  }
}

async function copyFiles(files: InputFiles, to: string): Promise<{ file: string; all: string[] }> {
  const { lookups, ...mapping } = files.mapping
  const { sheet, headerRow, skipRows = [], realDates } = mapping
  const conventions = conventionsIn(mapping)
  const hiddenRows = skipRows.includes('hidden') ? ('skip' as const) : ('refuse' as const)
  const readingOf = {
    file: { sheet, headerRow, skipRows, hiddenRows, realDates, usesOf: createColumnUses(files) },
    lookup: { headerRow: 0, hiddenRows: 'read', usesOf: (): ColumnUse[] => ['text', 'text'] },
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
    await copyFile(path, join(to, name))
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
  await writeFile(join(to, mappingName), JSON.stringify(stored))
  const all = namesOf(file, stored)
  // Fsynced, because the durable plan must not name a copy that a power failure truncated.
  const folders = all.flatMap((name) => [dirname(name), dirname(dirname(name))])
  for (const name of new Set([...all, ...folders, '.'])) await syncPath(join(to, name))
  return { file, all }
}

/** What the columns of a file hold: the cells of a workbook are read accordingly. */
function createColumnUses({ kind: name, mapping, columns }: InputFiles) {
  const translated = new Set(Object.keys(mapping.lookups ?? {}).map(comparableName))
  return (header: readonly string[]): (ColumnUse | undefined)[] => {
    const options = (kind: ImportKind) => ({ kind, header, mapping, columns })
    const count = (kind: ImportKind) => countMapped(options(kind), header)
    const kind =
      name === undefined
        ? Object.values(importKinds).reduce((best, other) => (count(other) > count(best) ? other : best))
        : importKinds[name]
    return mapColumns(options(kind)).targets.map(
      (target) => target && (translated.has(target.name) ? 'text' : useOf(target.meta)),
    )
  }
}

function useOf({ kind }: FieldMeta): ColumnUse {
  if (kind === 'text') return 'text'
  if (kind === 'integer' || kind === 'decimal') return 'number'
  return kind === 'date' ? 'date' : 'other'
}

/** Every file of an input, in a fixed order. */
const namesOf = (file: string, { lookups = {} }: Mapping) => [file, mappingName, ...Object.values(lookups)]

async function hashOf(folder: string, names: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const name of names) {
    hash.update(`\n${name}\n`)
    for await (const chunk of createReadStream(join(folder, name)) as AsyncIterable<Buffer>)
      hash.update(chunk)
  }
  return hash.digest('hex')
}

/** The hash of a stored input that the paths belong to; undefined for any other files. */
export const hashIn = ({
  file,
  mapping,
}: {
  file: string
  mapping?: string | undefined
}): string | undefined => {
  const [folder, hash] = /^imports\/input\/([0-9a-f]{64})\//.exec(file) ?? []
  return mapping === `${folder}${mappingName}` ? hash : undefined
}

/** The paths of all files of a stored input, relative to the data folder. The mapping must be there. */
export async function filesOf(input: StoredInput & { dataDir: string }): Promise<string[]> {
  const folder = posix.dirname(input.mapping)
  const stored = JSON.parse(await readFile(join(input.dataDir, input.mapping), 'utf8')) as Mapping
  return namesOf(posix.relative(folder, input.file), stored).map((name) => posix.join(folder, name))
}

/** Makes the data folder have a stored input, which never changes. */
export async function fetchInput({
  shared,
  ...input
}: StoredInput & { dataDir: string; shared: SharedFolder }): Promise<void> {
  if (!shared.isShared) return
  const mapping = join(input.dataDir, input.mapping)
  await shared.fetch(mapping)
  await refuseMissing(mapping)
  for (const path of await filesOf(input)) await shared.fetch(join(input.dataDir, path))
}

/** Keeps a stored input for workers on other machines. */
export async function shareInput({
  shared,
  ...input
}: StoredInput & { dataDir: string; shared: SharedFolder }): Promise<void> {
  if (!shared.isShared) return
  for (const path of await filesOf(input)) await shared.keep(join(input.dataDir, path))
}

async function isIntact(input: StoredInput & { dataDir: string }): Promise<boolean> {
  const folder = posix.dirname(input.mapping)
  try {
    const names = (await filesOf(input)).map((path) => posix.relative(folder, path))
    return (await hashOf(join(input.dataDir, folder), names)) === hashIn(input)
  } catch (error) {
    if (error instanceof SyntaxError || isSystemError(error, 'ENOENT')) return false
    throw error
  }
}

/** @throws {InvalidFile} the input no longer has the content that its name says */
export async function refuseDamaged(input: StoredInput & { dataDir: string }): Promise<void> {
  if (await isIntact(input)) return
  throw new InvalidFile(
    `The stored copy of the file, ${join(input.dataDir, input.file)}, is damaged: it was truncated or changed after the ` +
      'run started. Nothing was sent. Start the same import again with the original file.',
  )
}
