import { MappingError, quote, say } from '../errors.ts'
import type { DateOrder } from './dates.ts'
import type { DecimalMark } from './numbers.ts'

/** How a file writes numbers and dates; undefined means undecided. */
export interface Conventions {
  decimal?: DecimalMark
  dates?: DateOrder
}

/**
 * The conventions of a locale: `es-CL` uses a decimal comma and puts the day first.
 * @throws {MappingError} the locale is unknown
 */
export function conventionsOf(locale: string): Required<Conventions> {
  if (!isKnown(locale))
    throw new MappingError(
      say`${quote(locale, 'The value of --locale')} is not a known locale. Use one such as es-CL, es-CO, es-MX or en-US, or set --decimal and --dates.`,
    )
  const mark = new Intl.NumberFormat(locale, { numberingSystem: 'latn' })
    .formatToParts(1.5)
    .find(({ type }) => type === 'decimal')?.value
  const parts = new Intl.DateTimeFormat(locale, { calendar: 'gregory' }).formatToParts(0)
  const order = parts.map(({ type }) => (['day', 'month', 'year'].includes(type) ? type[0] : '')).join('')
  return {
    decimal: mark === ',' ? ',' : '.',
    dates: order === 'dmy' || order === 'mdy' ? order : 'ymd',
  }
}

function isKnown(locale: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(locale).length > 0
  } catch {
    return false
  }
}
