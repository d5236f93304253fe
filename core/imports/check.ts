import { conventionsIn } from './mapping/mapping.ts'
import type { CellTally } from './mapping/columns.ts'
import { type ControlTotals, createControlTotals } from './control-totals.ts'
import type { Dialect } from './csv/dialect.ts'
import type { Draft } from './parsed-changes.ts'
import { type Expectations, unmet } from './expectations.ts'
import type { ImportKind, ImportKindName } from './kinds.ts'
import { type ImportFile, type OpenFile, openFile } from './open-file.ts'
import { createDiskSet } from '../storage/disk-set.ts'
import { createProblems, type Problem } from './problems.ts'

/** What a look at the whole file found: plain data, for a preview, an approval and a report. */
export interface FileCheck {
  kind: ImportKindName
  file: string
  dialect: Dialect
  totals: ControlTotals
  /** Changes without a problem. */
  valid: number
  invalid: number
  /** The first thousand; `problemCount` counts all. */
  problems: Problem[]
  problemCount: number
  /** A problem concerns the whole file: leaving out the rows that have one would not mend it. */
  stopped: boolean
  /** First rows of changes that share their key, each with the row of another one. */
  doubled: Record<number, number>
  columns: ({ column: string; field: string } & CellTally)[]
  ignored: { column: string; why: string }[]
  /** Fields that are the same in every row. */
  constants: { field: string; text: string }[]
}

export interface CheckOptions extends ImportFile {
  expect?: Expectations
  /** Called for every problem that a row has, also those that the list has no room for. */
  onProblem?: (problem: Problem) => void
}

/**
 * Looks at a whole file before anything of it is sent: every problem of every cell, doubles, control totals. What
 * `stageFile` then yields are the same changes, read by the same code.
 * @throws {UnreadableFileError} @throws {MappingError}
 */
export async function checkFile({ expect = {}, onProblem, ...options }: CheckOptions): Promise<FileCheck> {
  const file = await openFile(options)
  const doubles = createDoubles(file)
  try {
    const problems = createProblems()
    const add = (problem: Problem) => {
      problems.add(problem)
      onProblem?.(problem)
    }
    for (const problem of file.problems) add(problem)
    const totals = createControlTotals(file.kind)
    const invalid = new Set<number>()
    let changes = 0
    for await (const draft of file.drafts()) {
      changes += 1
      totals.add(draft)
      const double = doubles.add(draft)
      for (const problem of [...draft.problems, ...double]) add(problem)
      if (draft.problems.length > 0) invalid.add(draft.row)
    }
    const conventions = conventionsIn(options.mapping ?? {})
    for (const problem of unmet({ kind: file.kind, expect, totals: totals.totals(), conventions }))
      add(problem)
    for (const row of Object.keys(doubles.rows)) invalid.add(Number(row))
    return {
      ...describe(file),
      totals: totals.totals(),
      valid: changes - invalid.size,
      invalid: invalid.size,
      problems: problems.list,
      problemCount: problems.count,
      stopped: problems.stopped,
      doubled: doubles.rows,
    }
  } finally {
    doubles.close()
    file.close()
  }
}

function describe({ kind, name, dialect, layout, columns, lines }: OpenFile) {
  const left = lines?.left() ?? 0
  const unused =
    left === 0 ? [] : [{ column: lines?.name ?? '', why: `${left} of its rows belong to no row of the file` }]
  return {
    kind: kind.name,
    file: name,
    dialect,
    columns: [...columns, ...(lines?.columns ?? [])].map(({ header, target, tally }) => ({
      column: header,
      field: target.name,
      ...tally,
    })),
    ignored: [...layout.ignored, ...unused],
    constants: layout.constants.map(({ target, text }) => ({ field: target.name, text })),
  }
}

/** Changes of one file that the ledger would hold by the same key. */
function createDoubles({ kind, layout }: OpenFile) {
  const hint = layout.grouped ? `: rows of one ${kind.one} have to follow each other` : ''
  const keys = createDiskSet()
  const rows: Record<number, number> = {}
  return {
    rows,
    close: () => keys.close(),
    add({ row, line, body, problems }: Draft): Problem[] {
      // A key of which a part is missing says nothing.
      const isKnown =
        kind.identifiers.length === 0
          ? problems.length === 0
          : kind.identifiers.every((field) => field in body)
      if (!isKnown) return []
      const key = kind.change.keyOf(body)
      const first = keys.add('', key, row) ? undefined : keys.get('', key)
      if (first === undefined) return []
      rows[row] = first
      rows[first] ??= row
      return [
        {
          row,
          line,
          column: columnsOf(kind),
          value: '',
          rule: 'double',
          words: `${sameAs(kind, first)}${hint}`,
        },
      ]
    },
  }
}

const columnsOf = ({ identifiers }: ImportKind) =>
  identifiers.length === 0 ? 'the row' : identifiers.join(', ')

/** Also for the first of the two, when it is left out of a run. */
export const sameAs = ({ one }: ImportKind, other: number): string =>
  `stands for the same ${one} as row ${other}`
