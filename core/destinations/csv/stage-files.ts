import { join } from 'node:path'
import { createRowCounter } from '../../tables/encoder/row-scanner.ts'
import type { Table } from '../../tables/table.ts'
import { checkRows, checkTables } from '../parts/check-parts.ts'
import type { Publication } from '../destination.ts'
import type { StagedFiles } from '../file-format.ts'
import type { Dialect, PublishedFile } from '../manifest/manifest.ts'
import { readParts } from '../parts/read-parts.ts'
import { dialectOf, toHeader } from './dialect.ts'
import { toExcel } from './excel.ts'
import { stageNotes } from './stage-notes.ts'
import { writeFile } from './write-file.ts'

interface Stage {
  publication: Publication
  dialect: Dialect
  folder: string | undefined
}

/**
 * Writes an export's files into a folder and counts what arrived. Without a folder it writes nothing and
 * returns the same result.
 * @throws {RowsMissingError}
 */
export async function stageFiles(publication: Publication, folder: string | undefined): Promise<StagedFiles> {
  const dialect = dialectOf(publication.forExcel ?? false)
  checkTables(publication)
  const stage: Stage = { publication, dialect, folder }
  const tables = []
  for (const table of publication.tables) {
    const file = await stageTable(stage, table)
    tables.push({
      ...table,
      key: [...table.key],
      columns: [...table.columns],
      rows: file.rows,
      files: [file],
    })
  }
  return { ...(await stageNotes(stage)), tables, dialect }
}

async function stageTable(stage: Stage, table: Table): Promise<PublishedFile> {
  const { publication, dialect, folder } = stage
  const { signal } = publication
  const parts = publication.parts.filter((part) => part.table === table.name)
  const path = `${table.name}.csv`
  async function* chunks() {
    yield Buffer.from(toHeader(dialect, table.columns))
    if (publication.forExcel) yield* toExcel(table, readParts(parts, { signal }))
    else yield* readParts(parts, { signal, reusesBuffer: true })
  }
  const written = await writeFile({
    path: folder && join(folder, path),
    chunks: chunks(),
    counter: createRowCounter(),
  })
  // The counter counts the header as a row.
  const rows = written.rows - 1
  checkRows(parts, { table: table.name, rows, where: path })
  return { path, rows, bytes: written.bytes, sha256: written.sha256 }
}
