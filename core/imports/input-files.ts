import { copyFile, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, posix, relative } from 'node:path'
import { syncPath } from '../storage/durable.ts'
import { isSystemError } from '../storage/system-errors.ts'
import type { FieldMeta } from '../billing/resources/fields.ts'
import { comparableName } from './cells/invisible.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { countMapped, mapColumns } from './mapping/column-mapping.ts'
import type { ColumnUse } from './workbook/render.ts'
import { copyName, refuseLarge, workbookRows } from './source-file.ts'
import { conventionsIn, type Mapping, type SheetChoice } from './mapping/mapping.ts'
import { hashOf, inputsFolder, isIntact, mappingName, namesOf, type StoredInput } from './stored-input.ts'
import { convertWorkbook, isWorkbook } from './workbook/convert.ts'

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

const temporaryPrefix = '.new-'
const dayMs = 86_400_000

/**
 * Copies the files of an import durably to where nobody changes them; of a workbook, the rows of its sheet. Each file
 * keeps its name, which messages show, in a folder of its own: no outside name decides where anything is written.
 *
 * @throws {UnreadableFileError} a file is too large, or a damaged workbook
 * @throws {MappingError} a workbook has no such sheet
 */
export async function prepareInput({
  files,
  dataDir,
}: {
  files: InputFiles
  dataDir: string
}): Promise<PreparedInput> {
  const inputs = join(dataDir, inputsFolder)
  await mkdir(inputs, { recursive: true })
  await removeLeftovers(inputs)
  const folder = await mkdtemp(join(inputs, temporaryPrefix))
  const remove = () => rm(folder, { recursive: true, force: true })
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

/** Removes the copies of commands that were killed. */
async function removeLeftovers(inputs: string): Promise<void> {
  for (const name of await readdir(inputs)) {
    const path = join(inputs, name)
    if (name.startsWith(temporaryPrefix) && (await stat(path)).mtimeMs < Date.now() - dayMs)
      await rm(path, { recursive: true, force: true })
  }
}

async function copyFiles(files: InputFiles, to: string): Promise<{ file: string; all: string[] }> {
  const { lookups, ...mapping } = files.mapping
  const { sheet, headerRow, skipRows = [], dateCells } = mapping
  const conventions = conventionsIn(mapping)
  const hiddenRows = skipRows.includes('hidden') ? ('skip' as const) : ('refuse' as const)
  const readingOf = {
    file: { sheet, headerRow, skipRows, hiddenRows, dateCells, usesOf: createColumnUses(files) },
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
