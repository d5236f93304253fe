import type { Body } from '../billing/client.ts'
import { isRecord } from '../billing/lossless-json.ts'
import { maxBodyBytes } from '../changes/body.ts'
import { textOf } from '../changes/compare-fields.ts'
import { comparableName, isBlank } from './cells/invisible.ts'
import type { SourceRow } from './csv/scanner.ts'
import { type ImportKind, requiredFields } from './kinds.ts'
import type { Column } from './mapping/column.ts'
import { eachRow, type FieldTarget, type Step } from './mapping/field-target.ts'
import type { ColumnMapping } from './mapping/column-mapping.ts'
import type { Fault, Problem } from './problems.ts'

/** The rows of a file that form one change. */
export type Unit = [SourceRow, ...SourceRow[]]

/** One change as the rows of a file request it, valid or not. */
export interface ParsedChange {
  /** Its first row. */
  row: number
  line: number
  /** How many rows of the file it takes. */
  rows: number
  /** Every field that could be read. */
  body: Body
  /** The body as JSON, as it will be sent. */
  text: string
  /** Identifies the change in the ledger. */
  key: string
  problems: Problem[]
}

export interface ChangeParserOptions {
  kind: ImportKind
  header: readonly string[]
  columns: readonly Column[]
  fields: ColumnMapping['fields']
  /** Indexes of the columns without a name. */
  unnamed: readonly number[]
  constants: readonly { target: FieldTarget; value: unknown }[]
}

/** Creates the parser from rows to bodies, which collects every problem of each. */
export function createChangeParser(options: ChangeParserOptions): (unit: Unit) => ParsedChange {
  const { kind, columns, constants } = options
  // A list is reported under its own name, whichever of its columns the file has.
  const columnOf = new Map(
    columns.map(({ target: { path }, header }) => {
      const field = String(path[0])
      return [field, path.length === 1 ? header : field]
    }),
  )
  // A field without any column is reported once, for the header.
  const required = requiredFields(kind).filter((field) => columnOf.has(field))

  const faultOfRow = createRowCheck(options)

  return (unit) => {
    const [first] = unit
    const parsing: Parsing = { body: {}, problems: [], failed: new Set() }
    const { body, problems, failed } = parsing
    const { row, line } = first
    const toChange = () => {
      const text = JSON.stringify(body)
      return { row, line, rows: unit.length, body, text, key: kind.change.keyOf(body), problems }
    }
    const ofRow = (fault: Fault) => problemAt(first, '', '', fault)
    const fault = faultOfRow(first)
    if (fault !== undefined) return { ...toChange(), problems: [ofRow(fault)] }
    for (const { target, value } of constants) setAt(body, target.path, 0, value)
    const isShaped = readUnit({ ...options, unit, parsing })
    compactLists(body)
    const change = toChange()
    const isOpen = (field: string) => isShaped && !failed.has(field)
    const report = (field: string, fault: Fault) =>
      problems.push(problemAt(first, columnOf.get(field) ?? field, textOf(body[field]), fault))
    for (const field of required)
      if (isOpen(field) && isMissing(body[field]))
        report(field, { rule: 'required', message: `is required for every ${kind.one}, but empty` })
    if (problems.length > 0 && looksLikeTotal(first, columns)) {
      const message = `looks like a total. Skip it with --skip-rows ${row}`
      return { ...change, problems: [ofRow({ rule: 'total', message })] }
    }
    for (const rule of kind.rules ?? []) {
      const found = rule(body)
      if (found === undefined || !isOpen(found.field)) continue
      const { field, ...fault } = found
      report(field, fault)
    }
    const bytes = Buffer.byteLength(change.text)
    if (bytes > maxBodyBytes) problems.push(ofRow(tooLarge(bytes)))
    return change
  }
}

const tooLarge = (bytes: number): Fault => ({
  rule: 'size',
  message: `makes a request of ${bytes.toLocaleString('en')} bytes; at most ${maxBodyBytes.toLocaleString('en')} are sent`,
})

const isMissing = (value: unknown) =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0)

/** The state of parsing one change. */
interface Parsing {
  body: Record<string, unknown>
  problems: Problem[]
  /** Fields with an invalid value: reporting them as missing too would be noise. */
  failed: Set<string>
}

/** False if the row's length differs from the header's, so that its cells may be in the wrong columns. */
function readUnit({
  unit,
  parsing,
  ...options
}: ChangeParserOptions & { unit: Unit; parsing: Parsing }): boolean {
  const [first] = unit
  let isShaped = true
  for (const [item, row] of unit.entries()) {
    const shape = shapeProblem(row, options)
    if (shape !== undefined) {
      parsing.problems.push(shape)
      isShaped = false
      continue
    }
    for (const column of options.columns) {
      if (item === 0 || column.target.path[1] === eachRow) readCell({ parsing, column, row, item })
      else checkSame({ parsing, column, row, first })
    }
  }
  return isShaped
}

interface Cell {
  parsing: Parsing
  column: Column
  row: SourceRow
}

function readCell({ parsing, column, row, item }: Cell & { item: number }): void {
  const text = row.cells[column.index] ?? ''
  const cell = column.read({ text, row: row.row })
  if (cell === undefined) return
  if ('value' in cell) return setAt(parsing.body, column.target.path, item, cell.value)
  parsing.failed.add(String(column.target.path[0]))
  parsing.problems.push(problemAt(row, column.header, text, cell.fault))
}

/** Checks a further row of a change: it repeats the cells of the first row or leaves them empty. */
function checkSame({ parsing, column, row, first }: Cell & { first: SourceRow }): void {
  const text = (row.cells[column.index] ?? '').trim()
  const expected = (first.cells[column.index] ?? '').trim()
  if (text === '' || text === expected) return
  const message = `differs from row ${first.row} (${expected || 'empty'}), but both rows belong to one change`
  parsing.problems.push(problemAt(row, column.header, text, { rule: 'differs', message }))
}

function shapeProblem(
  row: SourceRow,
  { header, unnamed }: Pick<ChangeParserOptions, 'header' | 'unnamed'>,
): Problem | undefined {
  const { cells } = row
  const hasMore = cells.slice(header.length).some((cell) => cell.trim() !== '')
  if (cells.length < header.length || hasMore) {
    const number = cells.length === 1 ? '1 cell' : `${cells.length} cells`
    const message = `has ${number}, but the header has ${header.length}. Quote each cell that contains the delimiter or a line break`
    return problemAt(row, '', '', { rule: 'cells', message })
  }
  const filled = unnamed.find((index) => cells[index]?.trim() !== '')
  if (filled === undefined) return undefined
  return problemAt(row, `column ${filled + 1}`, cells[filled] ?? '', {
    rule: 'column',
    message: 'is in a column without a name. Name the column in the header, or clear the cell',
  })
}

const problemAt = ({ row, line }: SourceRow, column: string, value: string, fault: Fault): Problem => ({
  row,
  line,
  column,
  value,
  ...fault,
})

/**
 * Sets the value at a path of a body; `item` replaces `eachRow`. List items that got no value remain holes
 * until `compactLists`.
 */
function setAt(body: object, path: readonly Step[], item: number, value: unknown): void {
  let holder = body as Record<string | number, unknown>
  for (let index = 0; index < path.length; index++) {
    const step = path[index] as Step
    const key = step === eachRow ? item : step
    if (index === path.length - 1) holder[key] = value
    else {
      holder[key] ??= typeof path[index + 1] === 'string' ? {} : []
      holder = holder[key] as Record<string | number, unknown>
    }
  }
}

/** Removes the holes from the lists of a body. */
function compactLists(body: Record<string, unknown>): void {
  for (const key in body) {
    const value = body[key]
    if (!Array.isArray(value)) continue
    // `filter` skips holes.
    const items: unknown[] = value.filter(() => true)
    body[key] = items
    for (const item of items) if (isRecord(item)) compactLists(item)
  }
}

/** Finds rows that no change can be made of: the header again, and rows of dashes. */
function createRowCheck({
  header,
  fields,
  columns,
}: { header: readonly string[]; columns: readonly Column[] } & Pick<ColumnMapping, 'fields'>) {
  const own = header.map((name) => fields.get(comparableName(name)))
  const known = own.filter((field) => field !== undefined).length
  // A cell that is not read, such as the number of a page, makes no record of a header.
  const isRead = new Set(columns.map(({ index }) => index))
  return ({ row, cells }: SourceRow): Fault | undefined => {
    const skip = `Skip it with --skip-rows ${row}`
    const filled = cells.flatMap((cell, index) => (isBlank(cell) ? [] : [index]))
    if (filled.every((index) => !/[\p{L}\p{N}]/u.test(cells[index] ?? '')))
      return { rule: 'noData', message: `has neither letters nor digits. ${skip}` }
    const named = new Map<number, string>()
    for (const index of filled) {
      const field = fields.get(comparableName(cells[index] ?? ''))
      if (field !== undefined) named.set(index, field)
      else if (isRead.has(index)) return undefined
    }
    const read = [...named].filter(([index]) => isRead.has(index))
    if (read.length < Math.max(1, Math.min(2, isRead.size))) return undefined
    if (read.every(([index, field]) => field === own[index]))
      return { rule: 'noData', message: `repeats the header. ${skip}` }
    if (new Set(named.values()).size < known) return undefined
    const message =
      'is a header with the columns in another order. Import the rows below it as a file of their own'
    return { rule: 'noData', message, stops: true }
  }
}

const totalWord = /^\s*((sub|gran |grand )?total(es)?|suma|sum)\b/i

/** Whether a row below the others is a total: it has the word, or only amounts. */
function looksLikeTotal({ cells }: SourceRow, columns: readonly Column[]): boolean {
  if (cells.some((cell) => totalWord.test(cell))) return true
  const isAmount = new Set(
    columns.flatMap(({ index, target }) => (target.meta.kind === 'decimal' ? [index] : [])),
  )
  const filled = cells.flatMap((cell, index) => (cell.trim() === '' ? [] : [index]))
  return filled.length > 0 && filled.every((index) => isAmount.has(index))
}
