import type { Body } from '../billing/client.ts'
import { textOf } from '../changes/compare-fields.ts'
import { fieldsOf } from '../tables/field-meta.ts'
import { closeHoles, type Column, put } from './mapping/columns.ts'
import { eachRow, type FieldTarget } from './mapping/field-target.ts'
import type { Unit } from './group-rows.ts'
import type { ImportKind } from './kinds.ts'
import type { LineSource } from './csv/line-source.ts'
import type { Fault, Problem } from './problems.ts'
import type { SourceRow } from './csv/scanner.ts'

/** One change as the rows of a file ask for it, right or wrong. */
export interface Draft {
  /** Of its first row. */
  row: number
  line: number
  /** How many rows of the file it takes. */
  rows: number
  /** What could be read. */
  body: Body
  problems: Problem[]
}

export interface DrafterOptions {
  kind: ImportKind
  header: readonly string[]
  columns: readonly Column[]
  /** Places of the columns without a name. */
  nameless: readonly number[]
  constants: readonly { target: FieldTarget; value: unknown }[]
  /** The file that the lines are in, and the column that joins the two. */
  lines?: { source: LineSource; join: number } | undefined
}

/** Makes bodies of rows, and says everything that is wrong with each. */
export function createDrafter(options: DrafterOptions): (unit: Unit) => Draft {
  const { kind, columns, constants, lines } = options
  // A list is called by its own name, whichever of its columns there are.
  const columnOf = new Map(
    [...columns, ...(lines?.source.columns ?? [])].map(({ target: { path }, header }) => {
      const field = String(path[0])
      return [field, path.length === 1 ? header : field]
    }),
  )
  // What no column is for at all is said once, of the header.
  const required = requiredOf(kind).filter((field) => columnOf.has(field))

  return (unit) => {
    const [first] = unit
    const reading = createReading()
    for (const { target, value } of constants)
      if (put(reading.body, target.path, 0, value)) reading.hasHoles = true
    const isShaped = readUnit({ ...options, unit, reading })
    readLines({ ...options, first, reading })
    const body: Body = reading.hasHoles ? closeHoles(reading.body) : reading.body
    const isOpen = (field: string) => isShaped && !reading.failed.has(field)
    const missing = required.filter((field) => isOpen(field) && isMissing(body[field]))
    const about = (field: string, fault: Fault) =>
      toProblem({ row: first, column: columnOf.get(field) ?? field, value: textOf(body[field]), fault })
    reading.problems.push(
      ...missing.map((field) =>
        about(field, { rule: 'required', words: `has to be given for every ${kind.one}` }),
      ),
    )
    for (const rule of kind.rules) {
      const fault = rule(body)
      if (fault === undefined || !isOpen(fault.field)) continue
      const { field, ...rest } = fault
      reading.problems.push(about(field, rest))
    }
    return { row: first.row, line: first.line, rows: unit.length, body, problems: reading.problems }
  }
}

/** Fields that a body of the kind must have, whatever the columns of a file. */
const requiredOf = ({ does, schema }: ImportKind): readonly string[] =>
  does === 'create'
    ? fieldsOf(schema).flatMap(([key, { write }]) => (write === 'required' ? [key] : []))
    : ['id']

const isMissing = (value: unknown) =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0)

/** What was read of a change so far. */
interface Reading {
  body: Record<string, unknown>
  problems: Problem[]
  /** Fields that were given, though not well: to call them missing too would be noise. */
  failed: Set<string>
  /** Whether its lists have holes. */
  hasHoles: boolean
}

const createReading = (): Reading => ({ body: {}, problems: [], failed: new Set(), hasHoles: false })

/** False where a row is not as long as the header: then none of its cells is known to stand where it should. */
function readUnit({ unit, reading, ...options }: DrafterOptions & { unit: Unit; reading: Reading }): boolean {
  const [first] = unit
  let isShaped = true
  for (const [item, row] of unit.entries()) {
    const shape = shapeProblem({ ...options, row })
    if (shape !== undefined) {
      reading.problems.push(shape)
      isShaped = false
      continue
    }
    for (const column of options.columns) {
      if (item === 0 || column.target.path[1] === eachRow) readCell({ reading, column, row, item })
      else checkSame({ reading, column, row, first })
    }
  }
  return isShaped
}

function readLines({ lines, first, reading }: DrafterOptions & { first: SourceRow; reading: Reading }): void {
  if (lines === undefined) return
  const { source, join } = lines
  for (const [item, row] of source.take((first.cells[join] ?? '').trim()).entries())
    for (const column of source.columns) readCell({ reading, column, row, item, file: source.name })
}

interface Cell {
  reading: Reading
  column: Column
  row: SourceRow
}

function readCell({ reading, column, row, item, file }: Cell & { item: number; file?: string }): void {
  const value = row.cells[column.index] ?? ''
  const cell = column.read({ text: value, row: row.row })
  if (cell === undefined) return
  if ('value' in cell) {
    if (put(reading.body, column.target.path, item, cell.value)) reading.hasHoles = true
    return
  }
  reading.failed.add(String(column.target.path[0]))
  const problem = toProblem({ row, column: column.header, value, fault: cell.fault })
  reading.problems.push(file === undefined ? problem : { ...problem, file })
}

/** A row that goes on with a change repeats what the first one said, or leaves it empty. */
function checkSame({ reading, column, row, first }: Cell & { first: SourceRow }): void {
  const value = (row.cells[column.index] ?? '').trim()
  const said = (first.cells[column.index] ?? '').trim()
  if (value === '' || value === said) return
  const words = `is not what row ${first.row} says (${said || 'nothing'}), of which this row is another line`
  reading.problems.push(toProblem({ row, column: column.header, value, fault: { rule: 'differs', words } }))
}

function shapeProblem({
  header,
  nameless,
  row,
}: Pick<DrafterOptions, 'header' | 'nameless'> & { row: SourceRow }) {
  const { cells } = row
  const extra = cells.slice(header.length).find((cell) => cell.trim() !== '')
  if (cells.length < header.length || extra !== undefined) {
    const words = `has ${cells.length} cells, and the header has ${header.length}. A cell that holds the delimiter or a line end needs quotes around it`
    return toProblem({ row, column: 'the row', value: '', fault: { rule: 'cells', words } })
  }
  const filled = nameless.find((index) => cells[index]?.trim() !== '')
  if (filled === undefined) return undefined
  const words = 'stands in a column without a name. Name the column in the header, or empty it'
  return toProblem({
    row,
    column: `column ${filled + 1}`,
    value: cells[filled] ?? '',
    fault: { rule: 'column', words },
  })
}

const toProblem = ({
  row,
  column,
  value,
  fault,
}: {
  row: SourceRow
  column: string
  value: string
  fault: Fault
}): Problem => ({
  row: row.row,
  line: row.line,
  column,
  value,
  ...fault,
})
