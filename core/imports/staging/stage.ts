import type { KeyedChange } from '../../changes/stage-changes.ts'
import { type FileCheck, sameAs } from '../check.ts'
import type { CheckedChange, CheckedChanges } from '../checked-changes.ts'
import { InvalidFileError } from '../errors.ts'
import { importKinds } from '../kinds.ts'
import { toOutwardSentence, toSentence } from '../problems.ts'

/** A change to stage, as far as its file decides. */
export type StagedRow = Pick<KeyedChange, 'row' | 'key' | 'body' | 'closed'>

export interface StageFileOptions {
  check: FileCheck
  /** The changes that the same check has parsed. */
  changes: CheckedChanges
  /** Whether changes with a problem stop the file, or are yielded as `rejected` with their problems. */
  onInvalid: 'stop' | 'skip'
}

/**
 * The changes of a checked file in batches, in row order. Yields nothing if the check found a problem with the whole
 * file or, with `stop`, any problem.
 * @throws {InvalidFileError}
 */
export async function* stageFile({
  check,
  changes,
  onInvalid,
}: StageFileOptions): AsyncGenerator<StagedRow[]> {
  const [first] = check.problems
  if (first !== undefined && (check.stopped || onInvalid === 'stop')) {
    const many =
      check.problemCount === 1 ? '1 problem' : `${check.problemCount.toLocaleString('en')} problems`
    const refused = `${check.file} has ${many}, so nothing was sent`
    throw new InvalidFileError(`${refused}: ${toSentence(first)}`, {
      withoutValues: `${refused}: ${toOutwardSentence(first)}. The values are in check.json in the run's folder.`,
    })
  }
  for await (const batch of changes.batches())
    yield batch.map((change) => {
      const { row, key, body } = change
      const closed = closedReason({ change, check })
      return { row, key, body, ...(closed && { closed }) }
    })
}

function closedReason(of: { change: CheckedChange; check: FileCheck }): StagedRow['closed'] {
  const { change, check } = of
  const other = check.duplicates[change.row]
  const reasons = [
    ...(change.problems ?? []),
    ...(other === undefined ? [] : [sameAs(importKinds[check.kind], other)]),
  ]
  if (reasons.length > 0) return { state: 'rejected', outcome: 'invalid', error: reasons.join('; ') }
  if (change.nothingGiven)
    return {
      state: 'dropped',
      outcome: 'nothingGiven',
      error: 'every cell that could change something is empty',
    }
  return undefined
}
