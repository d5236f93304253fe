import { MappingError, quote, say, UnreadableFileError } from '../errors.ts'
import { mayBeSwapped, swap } from './render.ts'

export interface FaultOptions {
  name: string
  hiddenRows: 'refuse' | 'skip' | 'read'
  dateCells: 'stored' | 'swapped' | undefined
}

/** The dates of one column. */
interface Dates {
  /** The first real date whose day could be the month, and how many there are. */
  first?: { row: number; day: string }
  swappable: number
  /** A real date whose day cannot be the month. */
  fixed?: { row: number; day: string }
  /** A text that only one order of day and month explains. */
  text?: { row: number; text: string }
}

/** A date as people type it, with day and month in front. */
const typedDate = /^\s*(\d{1,2})[-/.](\d{1,2})[-/.]\d{2}(\d{2})?(?!\d)/

/** Collects what makes a sheet another one than people see, and refuses it at its end. */
export function createSheetFaults({ name, hiddenRows, dateCells }: FaultOptions) {
  const rows: number[] = []
  const merges: string[] = []
  const columns = new Set<string>()
  const zeros: string[] = []
  let hasResults = false
  const dates = new Map<string, Dates>()
  const datesOf = (column: string): Dates => {
    const known = dates.get(column) ?? { swappable: 0 }
    dates.set(column, known)
    return known
  }
  return {
    addHiddenRow: (row: number) => rows.push(row),
    addMerge: (range: string) => merges.push(range),
    addHiddenColumn: (column: string) => columns.add(column),
    addFormula(formula: 'zero' | 'result', place: { row: number; column: string }) {
      if (formula === 'result') hasResults = true
      else zeros.push(`row ${place.row}, ${place.column}`)
    },
    addDate(day: string, { row, column }: { row: number; column: string }) {
      if (swap(day) === day) return
      const known = datesOf(column)
      if (!mayBeSwapped(day)) known.fixed ??= { row, day }
      else {
        known.first ??= { row, day }
        known.swappable += 1
      }
    },
    addText(text: string, { row, column }: { row: number; column: string }) {
      const [, first, second] = typedDate.exec(text)?.map(Number) ?? []
      if (first === undefined || second === undefined) return
      if (Math.max(first, second) > 12) datesOf(column).text ??= { row, text }
    },
    /** @throws {UnreadableFileError} @throws {MappingError} */
    refuse(): void {
      if (merges.length > 0)
        throw new UnreadableFileError(
          `${name} has merged cells below its header (${few(merges)}). Unmerge them, so that each row has its own values; if they are above the header, use --header-row.`,
        )
      if (rows.length > 0 && hiddenRows === 'refuse')
        throw new UnreadableFileError(
          `${name} has hidden rows, perhaps because of a filter (rows ${few(rows)}). Show them in the spreadsheet to import them, or leave them out with --skip-rows hidden.`,
        )
      if (columns.size > 0 && hiddenRows !== 'read')
        throw new UnreadableFileError(
          `${name} has values in hidden columns (${few([...columns])}). Show the columns in the spreadsheet to import them, or ignore each with --map "<column>=".`,
        )
      if (zeros.length > 0 && !hasResults)
        throw new UnreadableFileError(
          `${name} seems never to have been calculated: the result of each of its formulas is 0 or empty (${few(zeros, '; ')}). Open it in a spreadsheet and save it again.`,
        )
      for (const [column, of] of dates) refuseDates(column, of)
    },
  }

  function refuseDates(column: string, { first, swappable, fixed, text }: Dates): void {
    const place = `${name}, ${column}`
    if (dateCells === 'swapped' && fixed !== undefined)
      throw new MappingError(
        say`${place}: row ${fixed.row} has the date ${quote(fixed.day)}, whose day cannot be a month. Fix the dates in the spreadsheet instead of --date-cells swapped.`,
      )
    if (dateCells !== undefined || first === undefined || fixed !== undefined || text === undefined) return
    const { day, row } = first
    const all = swappable === 1 ? 'the only real date' : `all ${swappable} real dates`
    throw new MappingError(
      say`${place}: row ${text.row} has the text ${quote(text.text.trim())}, but ${all} could have day and month swapped, as happens when a spreadsheet opens a file of another language: row ${row} could mean ${quote(day)} or ${quote(swap(day))}. Use --date-cells stored if the sheet shows the right dates, or --date-cells swapped.`,
    )
  }
}

const mostNamed = 10
const few = (names: readonly (string | number)[], separator = ', ') =>
  names.length <= mostNamed
    ? names.join(separator)
    : `${names.slice(0, mostNamed).join(separator)} and ${names.length - mostNamed} more`
