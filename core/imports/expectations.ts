import { sameDecimal } from '../changes/decimals.ts'
import { nearestName } from '../tables/nearest-name.ts'
import { amountColumns, type ControlTotals } from './control-totals.ts'
import { MappingError } from './errors.ts'
import type { ImportKind } from './kinds.ts'
import { readNumber } from './cells/numbers.ts'
import type { Conventions } from './cells/locale.ts'
import { aboutColumn, type Problem } from './problems.ts'

/** What the sheet's own sums say that the file holds; where it does not, nothing is sent. */
export interface Expectations {
  rows?: number
  /** `lines.amount` to a sum, written as numbers of the file are. */
  totals?: Readonly<Record<string, string>>
}

/** `lines.amount=1234,56` */
export function parseExpectedTotal(text: string): [column: string, sum: string] {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1)
    throw new MappingError(`--expect-total ${text}: write it as lines.amount=1234.56.`, {
      withoutValues: 'An expected total is written as lines.amount=1234.56.',
    })
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

export function unmet({
  kind,
  expect,
  totals,
  conventions,
}: {
  kind: ImportKind
  expect: Expectations
  totals: ControlTotals
  conventions: Conventions
}): Problem[] {
  const problems: Problem[] = []
  if (expect.rows !== undefined && expect.rows !== totals.rows) {
    const words = `rows were expected, and the file has ${totals.rows}`
    problems.push(aboutColumn('--expect-rows', { rule: 'expected', value: String(expect.rows), words }))
  }
  for (const [column, value] of Object.entries(expect.totals ?? {})) {
    const words = whyUnmet({ kind, column, value, totals, conventions })
    if (words !== undefined)
      problems.push(aboutColumn(`--expect-total ${column}`, { rule: 'expected', value, words }))
  }
  return problems
}

function whyUnmet({
  kind,
  column,
  value,
  totals,
  conventions,
}: {
  kind: ImportKind
  column: string
  value: string
  totals: ControlTotals
  conventions: Conventions
}): string | undefined {
  const known = amountColumns(kind).map(({ name }) => name)
  if (!known.includes(column)) {
    const near = nearestName(column, known)
    return `is expected of a column that has no sum${near === undefined ? '' : `; did you mean ${near}?`}`
  }
  const reading = readNumber(value, conventions.decimal)
  if ('wrong' in reading) return reading.wrong
  if ('readings' in reading)
    return `reads both as ${reading.readings.join(' and as ')}: say which with --decimal or --locale`
  const sum = totals.sums[column] ?? '0'
  return sameDecimal(sum, reading.number) ? undefined : `was expected, and the file sums up to ${sum}`
}
