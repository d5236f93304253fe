import { basename } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { CellReader } from '../cells/cell.ts'
import { type Column, createColumn } from '../mapping/columns.ts'
import { detectDialect } from './dialect.ts'
import { isGuarded } from './is-guarded.ts'
import { toTarget } from '../mapping/field-target.ts'
import type { ImportKind } from '../kinds.ts'
import type { Problem } from '../problems.ts'
import { readRows } from './read-rows.ts'
import type { SourceRow } from './scanner.ts'

/** The lines of the records of a file, in a file of their own: the child table of an export. */
export interface LineSource {
  name: string
  columns: readonly Column[]
  problems: readonly Problem[]
  /** The rows of one record, in the order of their `position`; once. */
  take(id: string): SourceRow[]
  /** Rows that no record has taken. */
  left(): number
  close(): void
}

/**
 * Reads a file of lines. A person may have sorted either file, so its rows go to a temporary file that SQLite
 * makes, indexes and removes: memory stays flat, whatever the order.
 */
export async function openLineSource({
  kind,
  list,
  path,
  reader,
}: {
  kind: ImportKind
  list: string
  path: string
  reader: CellReader
}): Promise<LineSource> {
  const dialect = await detectDialect(path)
  const parent = `${kind.one}_id`
  const store = createRowStore()
  let header: string[] | undefined
  let at = { parent: -1, position: -1 }
  // A file of lines has no sheet of results: its dialect decides.
  for await (const row of readRows({ path, dialect, guarded: isGuarded(dialect, []) })) {
    if (header === undefined) {
      header = row.cells.map((cell) => cell.trim())
      at = { parent: header.indexOf(parent), position: header.indexOf('position') }
      if (at.parent === -1) break
    } else store.add({ row, parent: row.cells[at.parent] ?? '', position: row.cells[at.position] ?? '' })
  }
  store.index()
  const columns = (header ?? []).flatMap((column, index): Column[] => {
    const target = toTarget({ kind, name: `${list}.${column}` })
    if (target === undefined || target.readOnly) return []
    return [createColumn({ kind, header: column, index, target, reader })]
  })
  return {
    name: basename(path),
    columns,
    problems: at.parent === -1 ? [noParent({ file: basename(path), parent })] : [],
    take: (id) => store.take(id),
    left: () => store.left(),
    close: () => store.close(),
  }
}

const noParent = ({ file, parent }: { file: string; parent: string }): Problem => ({
  file,
  row: 1,
  line: 1,
  column: parent,
  value: '',
  rule: 'column',
  words: 'is needed to know whose lines these are, and no column is called so',
  stops: true,
})

/** Rows by what they belong to, on disk. */
function createRowStore() {
  const db = new DatabaseSync('')
  db.exec('pragma journal_mode = off; pragma synchronous = off')
  db.exec('create table lines (parent text, position integer, row integer, line integer, cells text)')
  db.exec('begin')
  const insert = db.prepare('insert into lines values (?, ?, ?, ?, ?)')
  return {
    add({ row, parent, position }: { row: SourceRow; parent: string; position: string }) {
      const place = /^\d{1,9}$/.test(position.trim()) ? Number(position) : row.row
      insert.run(parent.trim(), place, row.row, row.line, JSON.stringify(row.cells))
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
