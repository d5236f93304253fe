import { comparableName, isBlank } from './cells/invisible.ts'
import type { SourceRow } from './csv/scanner.ts'
import type { Column } from './mapping/column.ts'
import type { ColumnMapping } from './mapping/column-mapping.ts'
import type { Fault } from './problems.ts'

/** Finds rows that no change can be made of: the header again, and rows of dashes. */
export function createRowCheck({
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
export function looksLikeTotal({ cells }: SourceRow, columns: readonly Column[]): boolean {
  if (cells.some((cell) => totalWord.test(cell))) return true
  const isAmount = new Set(
    columns.flatMap(({ index, target }) => (target.meta.kind === 'decimal' ? [index] : [])),
  )
  const filled = cells.flatMap((cell, index) => (cell.trim() === '' ? [] : [index]))
  return filled.length > 0 && filled.every((index) => isAmount.has(index))
}
