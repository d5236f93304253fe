import type { Body } from '../billing/client.ts'
import { isRecord } from '../billing/lossless-json.ts'
import { maxBodyBytes } from '../changes/body.ts'
import { textOf } from '../changes/compare-fields.ts'
import { type CellReader, type CellReading } from './cells/cell.ts'
import { comparableName, isBlank, refusalOf } from './cells/refused.ts'
import type { SourceRow } from './csv/rows.ts'
import { type ImportKind, requiredFields } from './kinds.ts'
import { type ColumnMapping, eachRow, type FieldTarget, type Step } from './mapping/columns.ts'
import type { Lookup } from './mapping/lookup.ts'
import type { Fault, Problem } from './problems.ts'

/** The rows of a file that form one change. */
export type Unit = [SourceRow, ...SourceRow[]]

/** One change as the rows of a file request it, valid or not. */
export interface ParsedChange {
  /** Its first row. */
  row: number
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

/** A column being read: its field, how to read its cells, and a tally of them so far. */
export interface Column {
  header: string
  index: number
  target: FieldTarget
  tally: CellTally
  /** Undefined for an empty cell. */
  read(cell: { text: string; row: number }): CellReading | undefined
}

/** How many cells of a column were empty or null. */
export interface CellTally {
  given: number
  /** Not given in a create; unchanged in an update. */
  empty: number
  /** `\N`, which means null. */
  null: number
}

const nullCell = '\\N'

export function createColumn({
  kind,
  reader,
  lookup,
  asWritten = false,
  ...own
}: Pick<Column, 'header' | 'index' | 'target'> & {
  kind: ImportKind
  reader: CellReader
  lookup?: Lookup | undefined
  /** The encoding is known, so no word means another one. */
  asWritten?: boolean
}): Column {
  const { meta, name } = own.target
  const trimmed = kind.identifiers.includes(name)
  const tally: CellTally = { given: 0, empty: 0, null: 0 }
  const faultIn = (text: string) => refusalOf(text, { meta, trimmed, asWritten })
  return {
    ...own,
    tally,
    read({ text, row }) {
      if (isBlank(text)) {
        tally.empty += 1
        return undefined
      }
      if (text.trim() === nullCell) {
        tally.null += 1
        if (meta.nullable === true) return { value: null }
        return { fault: { rule: 'null', message: 'would set the field to null, which it does not allow' } }
      }
      tally.given += 1
      const fault = faultIn(text)
      if (fault !== undefined) return { fault }
      if (lookup === undefined) return reader.read({ text, meta, row, trimmed })
      const found = lookup.find(text)
      if ('fault' in found) return found
      const foundFault = faultIn(found.ours)
      return foundFault === undefined
        ? reader.read({ text: found.ours, meta, row, trimmed })
        : { fault: { ...foundFault, message: `is looked up as ${found.ours}, which ${foundFault.message}` } }
    },
  }
}

export interface ChangeParserOptions extends Pick<ColumnMapping, 'fields' | 'unnamed'> {
  kind: ImportKind
  header: readonly string[]
  columns: readonly Column[]
  constants: readonly { target: FieldTarget; value: unknown }[]
}

/** Creates the parser from rows to bodies, which collects every problem of each. */
export function createChangeParser(options: ChangeParserOptions): (unit: Unit) => ParsedChange {
  const { kind, header, columns, unnamed, constants } = options
  // A list is reported under its own name, whichever of its columns the file has.
  const columnOf = new Map(
    columns.map(({ target: { path }, header }) => {
      const field = String(path[0])
      return [field, path.length === 1 ? header : field]
    }),
  )
  // A field without any column is reported once, for the header.
  const required = requiredFields(kind).filter((field) => columnOf.has(field))
  const whyNoRecord = createRowCheck(options)

  /** Why a row's cells may be in the wrong columns, or in none. */
  function misshapen({ cells }: SourceRow): [column: string, value: string, fault: Fault] | undefined {
    const hasMore = cells.slice(header.length).some((cell) => cell.trim() !== '')
    if (cells.length < header.length || hasMore) {
      const number = cells.length === 1 ? '1 cell' : `${cells.length} cells`
      const message = `has ${number}, but the header has ${header.length}. Quote each cell that contains the delimiter or a line break`
      return ['', '', { rule: 'cells', message }]
    }
    const filled = unnamed.find((index) => cells[index]?.trim() !== '')
    if (filled === undefined) return undefined
    const message = 'is in a column without a name. Name the column in the header, or clear the cell'
    return [`column ${filled + 1}`, cells[filled] ?? '', { rule: 'column', message }]
  }

  return (unit) => {
    const [first] = unit
    const { row } = first
    const body: Record<string, unknown> = {}
    const problems: Problem[] = []
    /** Fields with an invalid value: reporting them as missing too would be noise. */
    const failed = new Set<string>()
    const report = (at: SourceRow, column: string, value: string, fault: Fault) =>
      void problems.push({ row: at.row, column, value, ...fault })
    const toChange = () => {
      const text = JSON.stringify(body)
      return { row, rows: unit.length, body, text, key: kind.change.keyOf(body), problems }
    }
    const noRecord = whyNoRecord(first)
    if (noRecord !== undefined) {
      report(first, '', '', noRecord)
      return toChange()
    }
    for (const { target, value } of constants) setAt(body, target.path, 0, value)
    let isShaped = true
    for (const [item, source] of unit.entries()) {
      const shape = misshapen(source)
      if (shape !== undefined) {
        report(source, ...shape)
        isShaped = false
        continue
      }
      for (const column of columns) {
        const { index, target } = column
        const text = source.cells[index] ?? ''
        if (item > 0 && target.path[1] !== eachRow) {
          // A further row of a change repeats the cells of the first one, or leaves them empty.
          const expected = (first.cells[index] ?? '').trim()
          if (text.trim() === '' || text.trim() === expected) continue
          const message = `differs from row ${row} (${expected || 'empty'}), but both rows belong to one change`
          report(source, column.header, text.trim(), { rule: 'differs', message })
          continue
        }
        const cell = column.read({ text, row: source.row })
        if (cell === undefined) continue
        if ('value' in cell) setAt(body, target.path, item, cell.value)
        else {
          failed.add(String(target.path[0]))
          report(source, column.header, text, cell.fault)
        }
      }
    }
    compactLists(body)
    const change = toChange()
    const reportField = (field: string, fault: Fault) => {
      if (isShaped && !failed.has(field))
        report(first, columnOf.get(field) ?? field, textOf(body[field]), fault)
    }
    for (const field of required)
      if (isMissing(body[field]))
        reportField(field, { rule: 'required', message: `is required for every ${kind.one}, but empty` })
    if (problems.length > 0 && looksLikeTotal(first, columns)) {
      problems.length = 0
      report(first, '', '', { rule: 'total', message: `looks like a total. Skip it with --skip-rows ${row}` })
      return change
    }
    for (const rule of kind.rules ?? []) {
      const fault = rule(body)
      if (fault !== undefined) reportField(fault.field, fault)
    }
    const bytes = Buffer.byteLength(change.text)
    if (bytes > maxBodyBytes) {
      const message = `makes a request of ${bytes.toLocaleString('en')} bytes; at most ${maxBodyBytes.toLocaleString('en')} are sent`
      report(first, '', '', { rule: 'size', message })
    }
    return change
  }
}

const isMissing = (value: unknown) =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0)

/**
 * Sets the value at a path of a body; `item` replaces `eachRow`. List items that got no value remain holes
 * until `compactLists`.
 */
function setAt(body: object, path: readonly Step[], item: number, value: unknown): void {
  let holder = body as Record<string | number, unknown>
  for (const [index, step] of path.entries()) {
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
function createRowCheck({ header, fields, columns }: ChangeParserOptions) {
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
