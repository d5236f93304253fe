import { DatabaseSync } from 'node:sqlite'
import type { CellReader } from './cells/cell.ts'
import { comparableName, invisibleFault } from './cells/invisible.ts'
import type { Encoding } from './csv/encoding.ts'
import type { SourceRow } from './csv/scanner.ts'
import { openTable, readTable, type Table } from './csv/table.ts'
import { shownName } from './file-name.ts'
import type { ImportKind } from './kinds.ts'
import { type Column, createColumn } from './mapping/column.ts'
import { toTarget } from './mapping/field-target.ts'
import { aboutColumn, type Problem } from './problems.ts'

/** The lines of a file's records, in a separate file: the child table of an export. */
export interface LineSource {
  name: string
  table: Table
  columns: readonly Column[]
  problems: readonly Problem[]
  /** The rows of a record, in the order of their `position`; each row is returned once. */
  take(id: string): SourceRow[]
  /** The number of rows not yet taken by a record. */
  left(): number
  close(): void
}

/**
 * Reads a file of lines. Either file may have been sorted, so the rows go to a temporary SQLite file: memory stays
 * flat, in any order.
 */
export async function openLineSource({
  kind,
  list,
  path,
  reader,
  encoding,
  ...known
}: {
  kind: ImportKind
  list: string
  path: string
  reader: CellReader
  encoding: Encoding | undefined
  /** From an earlier reading of the same file. */
  table: Table | undefined
}): Promise<LineSource> {
  const table = known.table ?? (await openTable(path, { encoding }))
  const header = table.header.map(comparableName)
  const parentColumn = `${kind.one}_id`
  const [parentAt, positionAt] = [header.indexOf(parentColumn), header.indexOf('position')]
  const name = shownName(path)
  const store = createRowStore()
  const problems: Problem[] = []
  if (parentAt === -1) {
    const message = `is missing; it says which ${kind.one} a line belongs to`
    problems.push({ ...aboutColumn(parentColumn, { message }), file: name })
  } else
    for await (const row of readTable(path, table)) {
      const parent = (row.cells[parentAt] ?? '').trim()
      store.add({ row, parent, position: row.cells[positionAt] ?? '' })
      // Its record would be sent without this line.
      const fault = invisibleFault(parent, { isText: true })
      if (fault !== undefined && problems.length === 0)
        problems.push({
          ...fault,
          row: row.row,
          line: row.line,
          column: parentColumn,
          value: parent,
          file: name,
        })
    }
  store.index()
  const columns = header.flatMap((column, index): Column[] => {
    const target = toTarget({ kind, name: `${list}.${column}` })
    if (target === undefined || target.readOnly) return []
    return [createColumn({ kind, header: column, index, target, reader, asWritten: encoding !== undefined })]
  })
  return { ...store, name, table, columns, problems }
}

/** Rows by the record they belong to, on disk. */
function createRowStore() {
  const db = new DatabaseSync('')
  db.exec('pragma journal_mode = off; pragma synchronous = off')
  db.exec('create table lines (parent text, position integer, row integer, line integer, cells text)')
  db.exec('begin')
  const insert = db.prepare('insert into lines values (?, ?, ?, ?, ?)')
  return {
    add({ row, parent, position }: { row: SourceRow; parent: string; position: string }) {
      const place = /^\d{1,9}$/.test(position.trim()) ? Number(position) : row.row
      insert.run(parent, place, row.row, row.line, JSON.stringify(row.cells))
    },
    index: () => db.exec('commit; create index parents on lines (parent, position, row)'),
    take(parent: string): SourceRow[] {
      const rows = db
        .prepare('select row, line, cells from lines where parent = ? order by position, row')
        .all(parent)
        .map(({ row, line, cells }) => ({
          row: Number(row),
          line: Number(line),
          cells: JSON.parse(String(cells)) as string[],
        }))
      if (rows.length > 0) db.prepare('delete from lines where parent = ?').run(parent)
      return rows
    },
    left: () => Number(db.prepare('select count(*) as left from lines').get()?.['left']),
    close: () => db.close(),
  }
}
