import type { Big } from 'big.js'
import type { DecimalMark } from '../cells/notation.ts'
import { type Unread, unreadText } from '../cells/placeholders.ts'

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

/** The widest number, in characters, that the format `General` shows in full, unless it is a whole number. */
const generalWidth = 11

const group = { ',': '.', '.': ',' } as const

/**
 * A number exactly as the sheet shows it, as far as that does not depend on the language of the spreadsheet:
 * leading zeros, decimals and the words of its format.
 *
 * @param number The number as far as spreadsheets keep it
 * @param options.minus Whether the section shows the sign of the number
 */
export function showNumber(
  number: Big,
  { tokens }: Section,
  { minus, decimal }: { minus: boolean; decimal: DecimalMark | undefined },
): string {
  const plain = number.toFixed()
  const unread = (why: Unread, content = plain) => unreadText(why, content)
  if (tokens === undefined) return unread('#FORMATTED')
  const size = number.abs()
  const sign = minus ? '-' : ''
  const isGeneral = ({ literal, text }: Token) => !literal && /^(general|@)$/i.test(text)
  if (tokens.length === 0) return unread('#NOT SHOWN')
  if (tokens.some(isGeneral)) {
    const digits = size.toFixed().replace('.', decimal ?? '.')
    if (digits.length > generalWidth && !size.eq(size.round(0))) return unread('#FORMATTED')
    return sign + tokens.map((token) => (isGeneral(token) ? digits : token.text)).join('')
  }
  const layout = layOut(tokens)
  if (layout === undefined) return unread('#FORMATTED')
  const scaled = size.times(100 ** layout.percents).div(1000 ** layout.thousands)
  const [whole = '', fraction = ''] = scaled.toFixed(layout.places).split('.')
  const zeros = layout.before.filter((token) => isPlace(token) && token.text === '0').length
  const hasGroups = layout.isGrouped && Math.max(whole.length, zeros) > 3
  if (hasGroups && decimal === undefined)
    return unread('#SEPARATED', [',', '.'].map((mark) => show(mark as DecimalMark)).join(' or '))
  return show(decimal ?? '.')

  function show(mark: DecimalMark): string {
    const { before, after } = layout ?? { before: [], after: [] }
    const shown =
      `${sign}${showWhole(before, whole, hasGroups ? group[mark] : '')}${showFraction(after, fraction, mark)}`.trim()
    return shown === '' ? unread('#NOT SHOWN') : shown
  }
}

/** A text as the sheet shows it, with the words of its format. */
export function showText(text: string, tokens: readonly Token[]): string {
  const shown = tokens.map((token) => (isTextSign(token) ? text : token.text)).join('')
  return shown.trim() === '' ? unreadText('#NOT SHOWN', text) : shown
}

interface Layout {
  /** Before and after the decimal mark. */
  before: Token[]
  after: Token[]
  places: number
  percents: number
  /** How often the number is divided by a thousand. */
  thousands: number
  isGrouped: boolean
}

const isPlace = ({ literal, text }: Token) => !literal && /[0#?]/.test(text)

/** Undefined if the format shows fractions, powers of ten or anything else than digits. */
function layOut(tokens: readonly Token[]): Layout | undefined {
  const layout: Layout = { before: [], after: [], places: 0, percents: 0, thousands: 0, isGrouped: false }
  const lastPlace = tokens.findLastIndex(isPlace)
  let isAfter = false
  for (const [at, token] of tokens.entries()) {
    const side = isAfter ? layout.after : layout.before
    if (token.literal) side.push(token)
    else if (token.text === '%') {
      layout.percents += 1
      side.push({ literal: true, text: '%' })
    } else if (isPlace(token)) {
      side.push(token)
      if (isAfter) layout.places += 1
    } else if (token.text === '.' && !isAfter) isAfter = true
    else if (token.text === ',' && at > lastPlace) layout.thousands += 1
    else if (token.text === ',' && !isAfter) layout.isGrouped = true
    else return undefined
  }
  return layout
}

/** Puts digits into their places from the right; the first place takes all that are left. */
function showWhole(tokens: readonly Token[], whole: string, separator: string): string {
  const first = tokens.findIndex(isPlace)
  let left = whole === '0' ? '' : whole
  let count = 0
  let shown = ''
  const put = (digit: string) => {
    if (separator !== '' && count > 0 && count % 3 === 0) shown = separator + shown
    shown = digit + shown
    count += 1
  }
  for (const [at, token] of [...tokens.entries()].toReversed()) {
    if (!isPlace(token)) {
      shown = token.text + shown
      continue
    }
    const digits = at === first ? left : left.slice(-1)
    left = left.slice(0, left.length - digits.length)
    for (const digit of digits.split('').toReversed()) put(digit)
    if (digits === '' && token.text === '0') put('0')
    if (digits === '' && token.text === '?') shown = ` ${shown}`
  }
  return shown
}

/** Zeros at the end are shown where their place says so. */
function showFraction(tokens: readonly Token[], fraction: string, mark: string): string {
  const places = tokens.filter(isPlace)
  let length = fraction.length
  while (length > 0 && fraction[length - 1] === '0' && places[length - 1]?.text !== '0') length -= 1
  let at = 0
  const shown = tokens.map((token) => {
    if (!isPlace(token)) return token.text
    at += 1
    return at <= length ? fraction[at - 1] : token.text === '?' ? ' ' : ''
  })
  return (places.length > 0 ? mark : '') + shown.join('')
}
