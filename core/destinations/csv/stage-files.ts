import { join } from 'node:path'
import type { Table } from '../../tables/table.ts'
import { checkTables, rowsOf } from '../parts/check-parts.ts'
import type { Publication } from '../destination.ts'
import type { StagedFiles } from '../file-format.ts'
import type { Dialect, PublishedFile } from '../manifest/manifest.ts'
import { readParts, sumOf } from '../parts/read-parts.ts'
import { dialectOf, toHeader } from './dialect.ts'
import { toExcel } from './excel.ts'
import { stageNotes } from './stage-notes.ts'
import { writeFile } from './write-file.ts'

interface Stage {
  publication: Publication
  dialect: Dialect
  folder: string
}

/** Writes an export's files into a folder. */
export async function stageFiles(publication: Publication, folder: string): Promise<StagedFiles> {
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
      parts: sumOf(publication.parts, table.name),
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
  return { path, rows: rowsOf(parts), ...(await writeFile({ path: join(folder, path), chunks: chunks() })) }
}
