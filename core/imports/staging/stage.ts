import type { Traits } from '../../changes/change-kind.ts'
import type { ChangeToStage } from '../../changes/stage-changes.ts'
import { type FileCheck, sameAs } from '../check.ts'
import type { Draft } from '../parsed-changes.ts'
import { InvalidFileError } from '../errors.ts'
import type { ImportKind } from '../kinds.ts'
import { type ImportFile, openFile } from '../open-file.ts'
import { toOutwardSentence, toSentence } from '../problems.ts'

/** A change to stage, as `stageChanges` takes it, with what an import knows of it. */
export interface StagedRow extends ChangeToStage {
  /** Its first row, as a spreadsheet counts: the header is 1. */
  row: number
  line: number
  /** How many rows of the file it takes. */
  rows: number
  key: string
  traits: Traits
}

export interface StageFileOptions extends ImportFile {
  /** What `checkFile` found in this file, read this way. */
  check: FileCheck
  /** Whether changes with a problem stop the file, or come out closed as `rejected` with their problems. */
  onInvalid: 'stop' | 'skip'
}

/**
 * The changes of a file that was checked, in the order of its rows. Nothing comes out of a file whose check found
 * what concerns all of it, nor, under `stop`, of one with any problem.
 * @throws {InvalidFileError}
 */
export async function* stageFile({
  check,
  onInvalid,
  ...options
}: StageFileOptions): AsyncGenerator<StagedRow> {
  const [first] = check.problems
  if (first !== undefined && (check.stopped || onInvalid === 'stop')) {
    const many = check.problemCount === 1 ? 'a problem' : `${check.problemCount} problems`
    const refused = `${check.file} has ${many}, and nothing of it was sent`
    throw new InvalidFileError(`${refused}: ${toSentence(first)}`, {
      withoutValues: `${refused}: ${toOutwardSentence(first)}. The values are in check.json in the run's folder.`,
    })
  }
  const file = await openFile(options)
  try {
    for await (const draft of file.drafts()) yield toStaged({ kind: file.kind, draft, check })
  } finally {
    file.close()
  }
}

function toStaged({ kind, draft, check }: { kind: ImportKind; draft: Draft; check: FileCheck }): StagedRow {
  const { row, line, rows, body } = draft
  const closed = whyClosed({ kind, draft, check })
  return {
    row,
    line,
    rows,
    body,
    key: kind.change.keyOf(body),
    traits: kind.change.traitsOf(body),
    ...(closed === undefined ? {} : { closed }),
  }
}

function whyClosed({
  kind,
  draft: { row, body, problems },
  check,
}: {
  kind: ImportKind
  draft: Draft
  check: FileCheck
}): ChangeToStage['closed'] {
  const words = problems.map(toSentence)
  const other = check.doubled[row]
  if (other !== undefined) words.push(`row ${row} ${sameAs(kind, other)}`)
  if (words.length > 0) return { state: 'rejected', outcome: 'invalid', error: words.join('; ') }
  if (kind.does === 'update' && Object.keys(body).length === 1)
    return {
      state: 'dropped',
      outcome: 'nothingGiven',
      error: 'every cell that could change something is empty',
    }
  return undefined
}
