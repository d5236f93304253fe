/** What is wrong by each rule, in a sentence without values: for Temporal, notifications and logs. */
const rules = {
  // The cell cannot be read, or its field does not accept the value.
  number: 'is not a number that this field accepts',
  date: 'is not a date that this field accepts',
  boolean: 'is neither true nor false',
  json: 'is not the JSON that this field accepts',
  value: 'is not one of the values that this field accepts',
  length: 'is longer than this field allows',
  min: 'is less than this field allows',
  email: 'is not a valid email address',
  null: 'would set the field to null, which it does not allow',
  /** It has two readings, or contradicts an earlier cell. */
  ambiguous: 'can be read in more than one way. Set --locale, or taxIds, decimal or dates with --input',
  lookup: 'is not in the lookup file',
  required: 'is required, but empty',
  duplicate: 'is the same change as another row',
  differs: 'differs from the first row of the same change',
  total: 'looks like a total. Skip it with --skip-rows',
  /** The header again, or a row of dashes. */
  noData: 'has no data. Skip it with --skip-rows',
  error: 'is an error of the spreadsheet',
  invisible: 'has an invisible letter',
  encoding: 'has letters that were read in a wrong encoding',
  column: 'is not a column that this import can use, or is missing',
  cells: 'does not have as many cells as the header',
  size: 'makes a request that is larger than 64 KB',
  /** A condition for the file as a whole. */
  expected: 'does not match what was expected of the file',
} as const
export type Rule = keyof typeof rules

/** A problem with a value. `message` continues after the value: `45.890 could mean ...`. */
export interface Fault {
  rule: Rule
  message: string
  /** The cell as it was most likely meant. */
  fix?: string | undefined
  /** It concerns the whole file, so leaving out this row would not fix it. */
  stops?: true
}

export interface Problem extends Fault {
  /** As a spreadsheet counts, from 1. */
  row: number
  /** The column's name in the file, a field without a column, or an option; '' for a whole row. */
  column: string
  /**
   * Column number from 1, if `column` may not be a name: in a file without a header, row 1 holds personal
   * data.
   */
  position?: number
  value: string
  /** How many more cells have the same problem, if this one represents them all. */
  more?: number
}

/** The most problems that a report lists. Further ones are only counted, so that memory stays constant. */
const mostKept = 1_000
/** Characters kept of a cell; a sentence shows fewer. */
const longestKept = 200
const longestShown = 60

/** Copies, because a substring keeps the whole text in memory. */
const shorten = (value: string): string =>
  value.length <= longestKept ? value : Buffer.from(value.slice(0, longestKept)).toString()

/**
 * Collects problems in file order. A problem with a whole column, or a value missing from a lookup, is
 * listed once with the number of cells it represents.
 */
export function createProblems() {
  const list: Problem[] = []
  const represented = new Map<string, Problem>()
  const collected = { list, count: 0, stopped: false }
  return {
    collected,
    add(problem: Problem): void {
      collected.count += 1
      collected.stopped ||= problem.stops === true
      const kept = { ...problem, value: shorten(problem.value) }
      const key = representativeKey(kept)
      const first = key === undefined ? undefined : represented.get(key)
      if (first !== undefined) {
        first.more = (first.more ?? 0) + 1
        return
      }
      if (list.length === mostKept) return
      list.push(kept)
      if (key !== undefined) represented.set(key, kept)
    },
  }
}

function representativeKey({ rule, column, value }: Problem): string | undefined {
  if (rule === 'ambiguous') return `${rule} ${column}`
  return rule === 'lookup' ? `${rule} ${column} ${value}` : undefined
}

/** A problem with a column or an option, which concerns the whole file; `openFile` gives it the row of the header. */
export const aboutColumn = (
  column: string,
  fault: Pick<Problem, 'message' | 'fix'> & Partial<Pick<Problem, 'rule' | 'value' | 'position'>>,
): Problem => ({ row: 1, column, value: '', rule: 'column', ...fault, stops: true })

/** A problem as one sentence, with the value: for the run's own files and the terminal of the file's owner. */
export const toSentence = (problem: Problem): string => inRow(problem, toRowSentence(problem))

/** The same in a row of a result file: column and fault, because the row has another number in that file. */
export const toRowSentence = (problem: Problem): string => inColumn(problem.column, faultOf(problem))

function faultOf(problem: Problem): string {
  const { value, message, fix } = problem
  const shown = value.length > longestShown ? `${value.slice(0, longestShown)}...` : value
  const suggestion = fix === undefined ? '' : `; did you mean ${fix}?`
  return `${shown === '' ? '' : `${shown} `}${message}${suggestion}${andMore(problem)}`
}

/** The same for Temporal, notifications and logs: row, column and rule, no cell contents. */
export const toOutwardSentence = (problem: Problem): string => inRow(problem, toOutwardRowSentence(problem))

export function toOutwardRowSentence(problem: Problem): string {
  const { column, position, rule } = problem
  const name = position === undefined ? column : `column ${position}`
  return inColumn(name, `${rules[rule]}${andMore(problem)}`)
}

const inColumn = (column: string, text: string) => (column === '' ? text : `${column}: ${text}`)

const inRow = ({ row, column }: Problem, text: string) =>
  // An option belongs to no row.
  column.startsWith('--') ? text : `row ${row}${column === '' ? ':' : ','} ${text}`

const andMore = ({ more }: Problem) => (more === undefined ? '' : ` (and ${more.toLocaleString('en')} more)`)
