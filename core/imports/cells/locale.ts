import type { DateOrder } from './dates.ts'
import { MappingError } from '../errors.ts'
import type { DecimalMark } from './numbers.ts'

/** How numbers and dates of a file are to be read; what is left out is not decided. */
export interface Conventions {
  decimal?: DecimalMark
  dates?: DateOrder
}

/** What a locale decides: `es-CL` has the decimal comma and the day first. */
export function conventionsOf(locale: string): Required<Conventions> {
  if (!isKnown(locale))
    throw new MappingError(`${locale} is no known locale. ${knownOnes}`, {
      withoutValues: `The locale is not a known one. ${knownOnes}`,
    })
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

const knownOnes = 'Give one such as es-CL, es-CO, es-MX or en-US, or say it with --decimal and --dates.'

function isKnown(locale: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(locale).length > 0
  } catch {
    return false
  }
}
