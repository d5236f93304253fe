import type { ChangesFile } from '../changes/staged-changes.ts'
import type { NewChange } from '../state/ledger/stage.ts'
import { createDiskSet } from '../storage/disk-set.ts'
import {
  columnNames,
  type ControlTotals,
  type Expectations,
  createControlTotals,
  findUnmet,
} from './totals.ts'
import type { Table } from './csv/table.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import type { ColumnMapping } from './mapping/columns.ts'
import { conventionsIn, type Mapping } from './mapping/mapping.ts'
import { type ImportFile, type OpenFile, openFile } from './open-file.ts'
import type { CellTally, ParsedChange } from './parsed-changes.ts'
import { createProblems, type Problem, toRowSentence, toSentence } from './problems.ts'

/** The result of checking a whole file: plain data, for a preview, an approval and a report. */
export interface FileCheck {
  kind: ImportKindName
  file: string
  /** Of each workbook, the sheet that was read, and those that were not. */
  sheets?: Mapping['sheets']
  /** How the file is written, detected once. */
  table: Table
  totals: ControlTotals
  /** Changes without a problem. */
  valid: number
  invalid: number
  /** The first thousand; `problemCount` counts all. */
  problems: Problem[]
  problemCount: number
  /** A problem concerns the whole file, so skipping the affected rows would not fix it. */
  stopped: boolean
  /** The first row of each change whose key occurs twice, mapped to the row of another one. */
  duplicates: Record<number, number>
  columns: ({ column: string; field: string } & CellTally)[]
  ignored: ColumnMapping['ignored']
}

export interface CheckOptions extends ImportFile, Partial<Expectations> {
  /** Gets every change as it is staged; of a file whose rows are sent again, only those. */
  changes?: Pick<ChangesFile, 'add'>
  sendAgain?: readonly number[]
}

/**
 * Checks a whole file before anything is sent: every cell, duplicates, control totals.
 * @throws {InvalidFile}
 * @throws {InvalidMapping}
 */
export async function checkFile(options: CheckOptions): Promise<FileCheck> {
  const { changes, sendAgain = [], mapping = {} } = options
  const file = await openFile(options)
  const { kind, name, table, columns, columnMapping } = file
  using duplicates = createDuplicates(file)
  const problems = createProblems()
  for (const problem of file.problems) problems.add(problem)
  const sums = createControlTotals(kind)
  const invalid = new Set<number>()
  let count = 0
  for await (const change of file.changes()) {
    count += 1
    sums.add(change)
    const isAgain = sendAgain.includes(change.row)
    if (sendAgain.length === 0 || isAgain) changes?.add(toStage(kind, change, isAgain))
    for (const problem of [...change.problems, ...duplicates.add(change)]) problems.add(problem)
    if (change.problems.length > 0) invalid.add(change.row)
  }
  const totals: ControlTotals = { ...sums.totals(), decimal: file.decimal() }
  const named = columnNames(columns.map(({ header, target }) => ({ column: header, field: target.name })))
  const summed = { ...totals, columns: named }
  for (const problem of findUnmet(kind, summed, options, conventionsIn(mapping))) problems.add(problem)
  for (const row of Object.keys(duplicates.rows)) invalid.add(Number(row))
  const { collected } = problems
  return {
    kind: kind.name,
    file: name,
    ...(mapping.sheets && { sheets: mapping.sheets }),
    table,
    totals,
    valid: count - invalid.size,
    invalid: invalid.size,
    problems: collected.list,
    problemCount: collected.count,
    stopped: collected.stopped,
    duplicates: duplicates.rows,
    columns: columns.map(({ header, target, tally }) => ({ column: header, field: target.name, ...tally })),
    ignored: columnMapping.ignored,
  }
}

type Closed = NonNullable<NewChange['closed']>

const invalid = (reasons: readonly string[]): Closed => ({
  state: 'rejected',
  outcome: 'invalid',
  error: reasons.join('; '),
})

const nothingGiven: Closed = {
  state: 'dropped',
  outcome: 'nothingGiven',
  error: 'every cell that could change something is empty',
}

/** A change as its own cells decide. That another row has its key is known only at the end of the file: `closedBy`. */
function toStage({ does }: ImportKind, change: ParsedChange, sendAgain: boolean): NewChange {
  const { row, key, body, text, problems } = change
  // A change of several rows may have its fault in another row than its first.
  const sentences = problems.map((problem) => (problem.row === row ? toRowSentence : toSentence)(problem))
  const isEmpty = does === 'update' && Object.keys(body).length === 1
  const closed = sentences.length > 0 ? invalid(sentences) : isEmpty ? nothingGiven : undefined
  return { row, key, body: text, ...(closed && { closed }), ...(sendAgain && { sendAgain }) }
}

/** Why a change of a checked file is not sent. */
export function closedBy(
  { duplicates, kind }: Pick<FileCheck, 'duplicates' | 'kind'>,
  { row, closed }: Pick<NewChange, 'row' | 'closed'>,
): NewChange['closed'] {
  const other = duplicates[row]
  if (other === undefined) return closed
  const own = closed?.outcome === 'invalid' ? [closed.error] : []
  return invalid([...own, sameAs(importKinds[kind], other)])
}

export const sameAs = ({ one }: ImportKind, other: number): string => `is the same ${one} as row ${other}`

/** Finds changes of a file that have the same key in the ledger. */
function createDuplicates({ kind, columnMapping }: OpenFile) {
  const hint = columnMapping.grouped ? `. Keep the rows of one ${kind.one} together` : ''
  const keys = createDiskSet()
  const rows: Record<number, number> = {}
  return {
    rows,
    [Symbol.dispose]: () => keys.close(),
    add({ row, key, body, problems }: ParsedChange): Problem[] {
      // A key without one of its parts identifies nothing.
      const isKnown =
        kind.identifiers.length === 0
          ? problems.length === 0
          : kind.identifiers.every((field) => field in body)
      const first = !isKnown || keys.add('', key, row) ? undefined : keys.get('', key)
      if (first === undefined) return []
      rows[row] = first
      rows[first] ??= row
      const column = kind.identifiers.join(', ')
      return [{ row, column, value: '', rule: 'duplicate', message: `${sameAs(kind, first)}${hint}` }]
    },
  }
}
