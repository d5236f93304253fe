import { Big } from 'big.js'
import { formatAmount, formatCount } from '../runs/view/format.ts'
import { nearestName } from '../tables/nearest-name.ts'
import type { Conventions } from './cells/locale.ts'
import { readNumber } from './cells/numbers.ts'
import { amountColumns, type ControlTotals } from './control-totals.ts'
import { MappingError, quote, say } from './errors.ts'
import type { ImportSettings } from './input.ts'
import type { ImportKind } from './kinds.ts'
import { aboutColumn, type Problem } from './problems.ts'

/** Conditions from the sheet's own totals. */
export type Expectations = Pick<ImportSettings, 'expectRows' | 'expectTotals'>

/**
 * Splits `lines.amount=1234,56` into column and sum.
 * @throws {MappingError}
 */
export function parseExpectedTotal(text: string): [column: string, sum: string] {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1)
    throw new MappingError(say`--expect-total ${quote(text)} is not a pair such as lines.amount=1234.56.`)
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

interface Check extends Expectations {
  kind: ImportKind
  totals: ControlTotals
  conventions: Conventions
}

export function findUnmet(check: Check): Problem[] {
  const { expectRows, expectTotals, totals } = check
  const problems: Problem[] = []
  if (expectRows !== undefined && expectRows !== totals.rows)
    problems.push(
      aboutColumn('--expect-rows', {
        rule: 'expected',
        value: String(expectRows),
        message: `rows were expected, but the sheet has ${formatCount(totals.rows)}`,
      }),
    )
  for (const [column, value] of Object.entries(expectTotals ?? {})) {
    const message = unmetReason(column, value, check)
    if (message !== undefined)
      problems.push(aboutColumn(`--expect-total ${column}`, { rule: 'expected', value, message }))
  }
  return problems
}

function unmetReason(
  column: string,
  value: string,
  { kind, totals, conventions }: Check,
): string | undefined {
  const known = amountColumns(kind).map(({ name }) => name)
  if (!known.includes(column)) {
    const near = nearestName(column, known)
    return `was expected, but this column has no total${near === undefined ? '' : `; did you mean ${near}?`}`
  }
  const reading = readNumber(value, conventions.decimal ?? totals.decimal)
  if ('message' in reading) return reading.message
  if ('readings' in reading)
    return `could mean ${reading.readings.join(' or ')}. Set --locale, --decimal , or --decimal .`
  const sum = totals.sums[column] ?? '0'
  const difference = new Big(sum).minus(reading.number).abs()
  if (difference.eq(0)) return undefined
  const places = Math.max(...[sum, reading.number].map((digits) => digits.split('.')[1]?.length ?? 0))
  const shown = (digits: string) => formatAmount(digits, totals.decimal ?? reading.mark)
  return `was expected, but the sheet adds up to ${shown(sum)}. The sheet and your total differ by ${shown(difference.toFixed(places))}`
}
