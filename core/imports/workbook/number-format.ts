/** How a spreadsheet displays a number: plain, as a percentage, or as a date, a time or both. */
export type NumberFormat = 'number' | 'percent' | 'date' | 'time' | 'dateTime'

/** A piece of a format: text that is shown as it is, or a sign with a meaning. */
export interface Token {
  literal: boolean
  text: string
}

/** The part of a format that applies to some numbers. */
export interface Section {
  format: NumberFormat
  /** Undefined for a built-in format that depends on the language of the spreadsheet. */
  tokens: readonly Token[] | undefined
  condition?: ((value: number) => boolean) | undefined
}

/** How the cells of a style are shown. */
export interface CellFormat {
  /** At least one: for all numbers; or for positive and negative ones; or also for zero. */
  sections: readonly [Section, ...Section[]]
  /** How texts are shown, if not as they are. */
  text?: readonly Token[]
}

/** Formats that workbooks use without defining them, and that are the same everywhere (ECMA-376, 18.8.30). */
const builtInCodes: Readonly<Record<number, string>> = {
  0: 'General',
  1: '0',
  2: '0.00',
  3: '#,##0',
  4: '#,##0.00',
  9: '0%',
  10: '0.00%',
  11: '0.00E+00',
  12: '# ?/?',
  13: '# ??/??',
  37: '#,##0;-#,##0',
  38: '#,##0;-#,##0',
  39: '#,##0.00;-#,##0.00',
  40: '#,##0.00;-#,##0.00',
  48: '##0.0E+0',
  49: '@',
}

/** Those that differ by language. */
const builtInFormats = new Map<number, NumberFormat>([
  ...[14, 15, 16, 17, ...range(27, 36), ...range(50, 58)].map((id) => [id, 'date'] as const),
  ...[18, 19, 20, 21, 45, 46, 47].map((id) => [id, 'time'] as const),
  [22, 'dateTime'],
])

/** The format of a number format id; `own` holds the workbook's formats by id. */
export function formatOf(id: number, own: ReadonlyMap<number, string>): CellFormat {
  const code = own.get(id) ?? builtInCodes[id]
  if (code !== undefined) return parseFormat(code)
  return { sections: [{ format: builtInFormats.get(id) ?? 'number', tokens: undefined }] }
}

/**
 * Quoted text, an escaped letter, padding, fill, a currency, elapsed time, a condition, another bracket, the
 * end of a section, `General`, or a sign.
 */
const piece =
  /"(?<quoted>[^"]*)"?|\\(?<escaped>.)|[_*].?|\[\$(?<currency>[^\]-]*)[^\]]*\]|(?<elapsed>\[[hms]+\])|\[(?<condition>[<>=]+)(?<limit>[^\]]*)\]|\[(?<bracket>[^\]]*)\]|(?<end>;)|(?<sign>general|am\/pm|a\/p|e[+-]|.)/gisu

/** Signs with a meaning in a format; any other sign is shown as it is. */
const signs = /[0#?.,%@/\p{L}\d]/u

/** `[DBNum1]` and the like show other digits, as no other sign does. */
const otherDigits = /^(DBNum|NatNum)/i

export function parseFormat(code: string): CellFormat {
  const parts: { tokens: Token[]; condition?: Section['condition'] }[] = [{ tokens: [] }]
  for (const { groups = {} } of code.matchAll(piece)) {
    const part = parts.at(-1)
    const { quoted, escaped, currency, elapsed, condition, limit, bracket, end, sign } = groups
    const literal = quoted ?? escaped ?? currency
    if (end !== undefined) parts.push({ tokens: [] })
    else if (condition !== undefined && part) part.condition = toCondition(condition, Number(limit))
    else if (literal !== undefined) part?.tokens.push({ literal: true, text: literal })
    else if (elapsed !== undefined) part?.tokens.push({ literal: false, text: elapsed })
    else if (bracket !== undefined && otherDigits.test(bracket))
      part?.tokens.push({ literal: false, text: 'z' })
    else if (sign !== undefined) part?.tokens.push({ literal: !signs.test(sign), text: sign })
  }
  // The last section is for texts if it has their sign, or if it is the fourth.
  const ofText = parts.find(
    ({ tokens }, at) => at === 3 || (tokens.some(isTextSign) && at === parts.length - 1),
  )
  const [first = { tokens: [] }, ...others] = parts
    .filter((part, at) => part !== ofText || at === 0)
    .slice(0, 3)
  const toSection = (part: typeof first): Section => ({ ...part, format: classify(part.tokens) })
  return {
    sections: [toSection(first), ...others.map(toSection)],
    ...(ofText && { text: ofText.tokens }),
  }
}

export const isTextSign = ({ literal, text }: Token): boolean => !literal && text === '@'

function classify(tokens: readonly Token[]): NumberFormat {
  const code = tokens.map(({ literal, text }) => (literal ? '' : text.toLowerCase())).join('')
  // No date has these signs, so letters beside them are words without quotes: MXN #,##0.00.
  if (/[#?]|general/.test(code)) return code.includes('%') ? 'percent' : 'number'
  const hasTime = /[hs]/.test(code)
  // Years of an era, and the names of days, in the formats of some languages.
  const isEastern = /^[^0#?]*(g|b|aaa|e)[^0#?]*$/.test(code)
  const hasDate = /[dy]/.test(code) || isEastern || (code.includes('m') && !hasTime)
  if (hasDate) return hasTime ? 'dateTime' : 'date'
  if (hasTime) return 'time'
  return code.includes('%') ? 'percent' : 'number'
}

function toCondition(sign: string, limit: number): Section['condition'] {
  return (value) => {
    if (sign === '<') return value < limit
    if (sign === '<=') return value <= limit
    if (sign === '>') return value > limit
    if (sign === '>=') return value >= limit
    return sign === '=' ? value === limit : value !== limit
  }
}

/** The section that shows a number, and whether a minus is shown before it. */
export function sectionOf({ sections }: CellFormat, value: number): { section: Section; minus: boolean } {
  const [first, second, third] = sections
  if (second === undefined && first.condition === undefined) return { section: first, minus: value < 0 }
  if (sections.some(({ condition }) => condition !== undefined)) {
    const section = sections.find(({ condition }) => condition?.(value) ?? false)
    return {
      section: section ?? sections.find(({ condition }) => condition === undefined) ?? first,
      minus: value < 0,
    }
  }
  if (value === 0) return { section: third ?? first, minus: false }
  return { section: value < 0 ? (second ?? first) : first, minus: false }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}
