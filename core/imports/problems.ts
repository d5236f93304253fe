export type Rule =
  /** The cell does not read, or reads as what its field can't hold. */
  | 'number'
  | 'date'
  | 'boolean'
  | 'json'
  | 'value'
  | 'length'
  | 'min'
  | 'email'
  | 'null'
  /** It reads in two ways, or in another way than a cell before it. */
  | 'ambiguous'
  | 'lookup'
  | 'required'
  | 'double'
  /** Rows of one change that don't say the same. */
  | 'differs'
  /** The header, or a row that is not as long as it. */
  | 'column'
  | 'cells'
  /** What was expected of the file as a whole. */
  | 'expected'

/** What is wrong with a value, wherever it stands. `words` goes on after the value: `45.890 reads both as ...`. */
export interface Fault {
  rule: Rule
  words: string
  /** What was most likely meant, written as the cell would have to be. */
  fix?: string
  /** It says something about the whole file, so that leaving out this row would not mend it. */
  stops?: true
}

export interface Problem extends Fault {
  /** As a spreadsheet counts: the header is 1. */
  row: number
  /** As a text editor counts; another than `row` only behind cells of several lines. */
  line: number
  /** The column as the file calls it; a field's name where the file has no such column. */
  column: string
  /** Its place from 1, where `column` may be no name: in a file without a header, row 1 holds people's data. */
  position?: number
  value: string
  /** Another file than the one imported: the one with its lines. */
  file?: string
  /** How many more cells have the same problem, where one says it for all. */
  more?: number
}

/** Problems that a report names one by one; of any more only the number is kept, so that memory stays flat. */
const mostKept = 1_000
/** Characters that are kept of a cell, of which a sentence shows fewer. */
const longestValue = 200

/** A copy, because a part of a text keeps all of that text in memory. */
const shorten = (value: string): string =>
  value.length <= longestValue ? value : Buffer.from(value.slice(0, longestValue)).toString()

export interface Problems {
  add(problem: Problem): void
  readonly list: Problem[]
  /** All that were added, kept or not. */
  readonly count: number
  readonly stopped: boolean
}

/**
 * Collects problems in the order of the file. What is said about a whole column, and a value that a lookup does
 * not know, is listed once with the number of cells it stands for.
 */
export function createProblems(): Problems {
  const list: Problem[] = []
  const once = new Map<string, Problem>()
  let count = 0
  let stopped = false
  return {
    list,
    get count() {
      return count
    },
    get stopped() {
      return stopped
    },
    add(problem) {
      count += 1
      stopped ||= problem.stops === true
      const alike = onceFor({ ...problem, value: shorten(problem.value) })
      const first = alike === undefined ? undefined : once.get(alike)
      if (first !== undefined) {
        first.more = (first.more ?? 0) + 1
        return
      }
      if (list.length === mostKept) return
      const kept = { ...problem, value: shorten(problem.value) }
      list.push(kept)
      if (alike !== undefined) once.set(alike, kept)
    },
  }
}

function onceFor({ rule, column, value }: Problem): string | undefined {
  if (rule === 'ambiguous') return `${rule} ${column}`
  return rule === 'lookup' ? `${rule} ${column} ${value}` : undefined
}

/** What is wrong with a column or with an option, and so with the whole file. */
export const aboutColumn = (
  column: string,
  {
    fix,
    ...fault
  }: { words: string; rule?: Rule; value?: string; position?: number; fix?: string | undefined },
): Problem => ({
  row: 1,
  line: 1,
  column,
  value: '',
  rule: 'column',
  ...fault,
  ...(fix === undefined ? {} : { fix }),
  stops: true,
})

/** A problem as one sentence, with the value: for the run's own files and the terminal of whoever has the file. */
export function toSentence(problem: Problem): string {
  const { column, value, words, fix } = problem
  const shown = value === '' ? '' : ` ${value.length > 60 ? `${value.slice(0, 60)}...` : value}`
  const meant = fix === undefined ? '' : `; did you mean ${fix}?`
  return `${placeOf(problem)}, ${column}:${shown} ${words}${meant}${alsoIn(problem)}`
}

/** The same for Temporal, notifications and logs: row, column and rule, and nothing that a cell holds. */
export function toOutwardSentence(problem: Problem): string {
  const { column, position, rule } = problem
  const name = position === undefined ? column : `column ${position}`
  return `${placeOf(problem)}, ${name}: ${rules[rule]}${alsoIn(problem)}`
}

const placeOf = ({ row, line, file }: Problem) =>
  `${file === undefined ? '' : `${file}, `}row ${row}${row === line ? '' : ` (line ${line})`}`

const alsoIn = ({ more }: Problem) => (more === undefined ? '' : ` (and ${more.toLocaleString('en')} more)`)

const rules: Readonly<Record<Rule, string>> = {
  number: 'is not a number that this field accepts',
  date: 'is not a date that this field accepts',
  boolean: 'is neither true nor false',
  json: 'is not the JSON that this field accepts',
  value: 'is not one of the values that this field accepts',
  length: 'is longer than this field allows',
  min: 'is less than this field allows',
  email: 'is not an e-mail address',
  null: 'would become null, and this field can’t be null',
  ambiguous: 'reads in more than one way: set --locale, --decimal or --dates',
  lookup: 'is not in the look-up file',
  required: 'is required, and is empty',
  double: 'stands for the same change as another row',
  differs: 'differs from the first row of the same change',
  column: 'is not a column that this import can use, or is missing',
  cells: 'does not have as many cells as the header',
  expected: 'is not what was expected of the file',
}
