import type { CellReader } from '../cells/cell.ts'
import { type CellReading, hiddenFault } from '../cells/field-value.ts'
import { isBlank } from '../cells/invisible.ts'
import { placeholderMessage } from '../cells/placeholders.ts'
import { rereadAsUtf8 } from '../csv/encoding.ts'
import type { ImportKind } from '../kinds.ts'
import type { Fault } from '../problems.ts'
import { whyUnread } from '../workbook/unread-cells.ts'
import type { FieldTarget } from './field-target.ts'
import type { Lookup } from './lookup.ts'

/** How many cells of a column were empty or null. */
export interface CellTally {
  given: number
  /** Not given in a create; unchanged in an update. */
  empty: number
  /** `\N`, which means null. */
  null: number
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

const nullCell = '\\N'

export function createColumn({
  kind,
  header,
  index,
  target,
  reader,
  lookup,
  asWritten = false,
}: Pick<Column, 'header' | 'index' | 'target'> & {
  kind: ImportKind
  reader: CellReader
  lookup?: Lookup | undefined
  /** The encoding is known, so no word means another one. */
  asWritten?: boolean
}): Column {
  const { meta } = target
  const trimmed = kind.identifiers.includes(target.name)
  const tally: CellTally = { given: 0, empty: 0, null: 0 }
  /** What no field accepts, whatever its type. */
  function faultIn(text: string): Fault | undefined {
    const message = whyUnread(text) ?? placeholderMessage(text)
    if (message !== undefined) return { rule: 'error', message }
    return misreadFault(text, asWritten) ?? hiddenFault(text, { meta, trimmed })
  }
  return {
    header,
    index,
    target,
    tally,
    read({ text, row }) {
      const bare = text.trim()
      if (isBlank(text)) {
        tally.empty += 1
        return undefined
      }
      if (bare === nullCell) {
        tally.null += 1
        if (meta.nullable === true) return { value: null }
        return { fault: { rule: 'null', message: 'would set the field to null, which it does not allow' } }
      }
      tally.given += 1
      const fault = faultIn(text)
      if (fault !== undefined) return { fault }
      if (lookup === undefined) return reader.read({ text, meta, row, trimmed })
      const found = lookup.find({ text, row })
      if ('fault' in found) return found
      const foundFault = faultIn(found.ours)
      return foundFault === undefined
        ? reader.read({ text: found.ours, meta, row, trimmed })
        : { fault: { ...foundFault, message: `is looked up as ${found.ours}, which ${foundFault.message}` } }
    },
  }
}

function misreadFault(text: string, asWritten: boolean): Fault | undefined {
  if (text.includes('\ufffd'))
    return {
      rule: 'encoding',
      message: 'has \ufffd where a program could not read a letter. Enter the letter',
    }
  const meant = asWritten ? undefined : rereadAsUtf8(text)
  if (meant === undefined) return undefined
  const message = 'looks like UTF-8 read in another encoding (--encoding utf-8 takes it as it is)'
  return { rule: 'encoding', message, fix: meant }
}
