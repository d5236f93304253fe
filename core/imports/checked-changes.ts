import type { Spool } from '../storage/spool.ts'
import type { ImportKind } from './kinds.ts'
import type { ParsedChange } from './parsed-changes.ts'
import { toRowSentence, toSentence } from './problems.ts'

/** A change of a file as its check parsed it: what is staged of it, so that the file is parsed once. */
export interface CheckedChange {
  /** Its first row, as a spreadsheet counts from 1: the header is row 1. */
  row: number
  key: string
  /** JSON text exactly as it will be sent. */
  body: string
  /** Its problems, a sentence each. That another row has its key is known only at the end of the file. */
  problems?: string[]
  /** An update in which every cell that could change something is empty. */
  nothingGiven?: true
}

export type CheckedChanges = Spool<CheckedChange>

export function toCheckedChange(
  { does }: ImportKind,
  { row, key, body, text, problems }: ParsedChange,
): CheckedChange {
  return {
    row,
    key,
    body: text,
    // A change of several rows may have its fault in another row than its first.
    ...(problems.length > 0 && {
      problems: problems.map((problem) => (problem.row === row ? toRowSentence : toSentence)(problem)),
    }),
    ...(does === 'update' && Object.keys(body).length === 1 && { nothingGiven: true as const }),
  }
}
