import type { Traits } from '../../changes/change-kind.ts'
import type { ChangeToStage } from '../../changes/stage-changes.ts'
import { type FileCheck, sameAs } from '../check.ts'
import { InvalidFileError } from '../errors.ts'
import type { ImportKind } from '../kinds.ts'
import { type ImportFile, openFile } from '../open-file.ts'
import type { ParsedChange } from '../parsed-changes.ts'
import { toOutwardSentence, toRowSentence, toSentence } from '../problems.ts'

/** A change to stage, in the form for `stageChanges`, with the import's own facts. */
export interface StagedRow extends ChangeToStage {
  /** Its first row, as a spreadsheet counts from 1: the header is row 1. */
  row: number
  line: number
  /** How many rows of the file it takes. */
  rows: number
  key: string
  traits: Traits
}

export interface StageFileOptions extends Omit<ImportFile, 'tables'> {
  /** The result of `checkFile` for this file, read the same way. */
  check: FileCheck
  /** Whether changes with a problem stop the file, or are yielded as `rejected` with their problems. */
  onInvalid: 'stop' | 'skip'
}

/**
 * The changes of a checked file, in row order. Yields nothing if the check found a problem with the whole
 * file or, with `stop`, any problem.
 * @throws {InvalidFileError}
 */
export async function* stageFile({
  check,
  onInvalid,
  ...options
}: StageFileOptions): AsyncGenerator<StagedRow> {
  const [first] = check.problems
  if (first !== undefined && (check.stopped || onInvalid === 'stop')) {
    const many =
      check.problemCount === 1 ? '1 problem' : `${check.problemCount.toLocaleString('en')} problems`
    const refused = `${check.file} has ${many}, so nothing was sent`
    throw new InvalidFileError(`${refused}: ${toSentence(first)}`, {
      withoutValues: `${refused}: ${toOutwardSentence(first)}. The values are in check.json in the run's folder.`,
    })
  }
  const file = await openFile({ ...options, tables: check.tables })
  try {
    for await (const change of file.changes()) {
      const { row, line, rows, body } = change
      const kind = file.kind.change
      const closed = closedReason({ kind: file.kind, change, check })
      yield {
        row,
        line,
        rows,
        body,
        key: kind.keyOf(body),
        traits: kind.traitsOf(body),
        ...(closed && { closed }),
      }
    }
  } finally {
    file.close()
  }
}

function closedReason({
  kind,
  change: { row, body, problems },
  check,
}: {
  kind: ImportKind
  change: ParsedChange
  check: FileCheck
}): ChangeToStage['closed'] {
  // A change of several rows may have its fault in another row than its first.
  const reasons = problems.map((problem) =>
    problem.row === row ? toRowSentence(problem) : toSentence(problem),
  )
  const other = check.duplicates[row]
  if (other !== undefined) reasons.push(sameAs(kind, other))
  if (reasons.length > 0) return { state: 'rejected', outcome: 'invalid', error: reasons.join('; ') }
  if (kind.does === 'update' && Object.keys(body).length === 1)
    return {
      state: 'dropped',
      outcome: 'nothingGiven',
      error: 'every cell that could change something is empty',
    }
  return undefined
}
