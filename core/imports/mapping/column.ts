import type { CellReader } from '../cells/cell.ts'
import type { CellReading } from '../cells/field-value.ts'
import type { ImportKind } from '../kinds.ts'
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

/** How spreadsheets show errors, in English and Spanish. */
const spreadsheetError =
  /^#(N\/A|N\/D|NULL!|DIV\/0!|VALUE!|REF!|NAME\?|NUM!|SPILL!|CALC!|GETTING_DATA|¡(NULO|DIV\/0|VALOR|REF|NUM|DESBORDAMIENTO|CALC)!|¿NOMBRE\?)$/

/** Why a cell of any column has no value. */
const whyNoValue = (text: string): string | undefined =>
  whyUnread(text) ??
  (spreadsheetError.test(text)
    ? 'is an error of the spreadsheet. Fix its formula, or enter the value'
    : undefined)

export function createColumn({
  kind,
  header,
  index,
  target,
  reader,
  lookup,
}: Pick<Column, 'header' | 'index' | 'target'> & {
  kind: ImportKind
  reader: CellReader
  lookup?: Lookup | undefined
}): Column {
  const { meta } = target
  const trimmed = kind.identifiers.includes(target.name)
  const tally: CellTally = { given: 0, empty: 0, null: 0 }
  return {
    header,
    index,
    target,
    tally,
    read({ text, row }) {
      const bare = text.trim()
      if (bare === '') {
        tally.empty += 1
        return undefined
      }
      if (bare === nullCell) {
        tally.null += 1
        if (meta.nullable === true) return { value: null }
        return { fault: { rule: 'null', message: 'would set the field to null, which it does not allow' } }
      }
      tally.given += 1
      const message = whyNoValue(bare)
      if (message !== undefined) return { fault: { rule: 'error', message } }
      const found = lookup === undefined ? { ours: text } : lookup(text)
      return 'fault' in found ? found : reader.read({ text: found.ours, meta, row, trimmed })
    },
  }
}
