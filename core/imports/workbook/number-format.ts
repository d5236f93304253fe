import { Big } from 'big.js'
import { type Conventions, type DecimalMark, withMark, writeDate } from '../cells/notation.ts'
import { unreadText } from '../cells/refused.ts'

/** How a spreadsheet displays a number: plain, as a percentage, or as a date, a time or both. */
export type NumberFormat = 'number' | 'percent' | 'date' | 'time' | 'dateTime'

/** A piece of a format: text that is shown as it is, or a sign with a meaning. */
interface Token {
  literal: boolean
  text: string
}

/** The part of a format that applies to some numbers. */
interface Section {
  format: NumberFormat
  /** Undefined for a built-in format that depends on the language of the spreadsheet. */
  tokens: readonly Token[] | undefined
}

/** How the cells of a style are shown. */
export interface CellFormat {
  /** For all numbers; or for positive and negative ones; or also for zero. */
  sections: readonly [Section, ...Section[]]
  /** How texts are shown, if not as they are. */
  text?: readonly Token[]
}

/** What the field of a column holds; `other`: anything else, or a column that is not read. */
export type ColumnUse = 'text' | 'number' | 'date' | 'other'

export interface Rendering extends Conventions {
  is1904: boolean
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
  37: '#,##0;-#,##0',
  38: '#,##0;-#,##0',
  39: '#,##0.00;-#,##0.00',
  40: '#,##0.00;-#,##0.00',
  49: '@',
}

/** Those that differ by language. */
function builtInFormat(id: number): NumberFormat {
  if (id === 22) return 'dateTime'
  if ((id >= 14 && id <= 17) || (id >= 27 && id <= 36) || (id >= 50 && id <= 58)) return 'date'
  return (id >= 18 && id <= 21) || (id >= 45 && id <= 47) ? 'time' : 'number'
}

/** The format of a number format id; `own` holds the workbook's formats by id. */
export function formatOf(id: number, own: ReadonlyMap<number, string>): CellFormat {
  const code = own.get(id) ?? builtInCodes[id]
  if (code !== undefined) return parseFormat(code)
  return { sections: [{ format: builtInFormat(id), tokens: undefined }] }
}

/** Quoted text, an escaped letter, padding or fill, a currency, another bracket, or a sign. */
const piece =
  /"(?<quoted>[^"]*)"?|\\(?<escaped>.)|[_*].?|\[\$(?<currency>[^\]-]*)[^\]]*\]|\[(?<bracket>[^\]]*)\]|(?<sign>general|am\/pm|a\/p|e[+-]|.)/gisu

/** Signs with a meaning in a format; any other sign is shown as it is. */
const signs = /[0#?.,%@/\p{L}\d]/u

/** Elapsed time, a condition, or other digits; any other bracket is a colour. */
const meaningfulBracket = /^(?:[hms]+$|[<>=]|DBNum|NatNum)/i

export function parseFormat(code: string): CellFormat {
  const parts: Token[][] = [[]]
  for (const { groups = {} } of code.matchAll(piece)) {
    const { quoted, escaped, currency, bracket, sign } = groups
    const literal = quoted ?? escaped ?? currency
    if (sign === ';') parts.push([])
    else if (literal !== undefined) parts.at(-1)?.push({ literal: true, text: literal })
    else if (sign !== undefined) parts.at(-1)?.push({ literal: !signs.test(sign), text: sign })
    else if (bracket !== undefined && meaningfulBracket.test(bracket))
      parts.at(-1)?.push({ literal: false, text: /^[hms]/i.test(bracket) ? bracket : '[' })
  }
  // The last section is for texts if it has their sign, or if it is the fourth.
  const last = parts.length - 1
  const text = last === 3 || parts[last]?.some(isTextSign) ? parts[last] : undefined
  const [first = [], ...others] = text === undefined || last === 0 ? parts : parts.slice(0, last)
  const toSection = (tokens: readonly Token[]): Section => ({ format: classify(tokens), tokens })
  return { sections: [toSection(first), ...others.map(toSection)], ...(text && { text }) }
}

const isTextSign = ({ literal, text }: Token): boolean => !literal && text === '@'

function classify(tokens: readonly Token[]): NumberFormat {
  const code = tokens.map(({ literal, text }) => (literal ? '' : text.toLowerCase())).join('')
  // No date has these signs, so letters beside them are words without quotes: MXN #,##0.00.
  if (!/[#?]|general/.test(code)) {
    const hasTime = /[hs]/.test(code)
    const hasDate = /[dy]/.test(code) || (code.includes('m') && !hasTime)
    if (hasDate) return hasTime ? 'dateTime' : 'date'
    if (hasTime) return 'time'
  }
  return code.includes('%') ? 'percent' : 'number'
}

/** The section that shows a number, and whether a minus is shown before it. */
function sectionOf({ sections }: CellFormat, value: number): { section: Section; minus: boolean } {
  const [first, negative, zero] = sections
  if (negative === undefined) return { section: first, minus: value < 0 }
  return { section: value < 0 ? negative : value === 0 ? (zero ?? first) : first, minus: false }
}

/** Numbers are doubles: a spreadsheet shows the first 15 digits and none of the noise after them. */
const shownDigits = 15
const toDigits = (value: number) => new Big(value.toPrecision(shownDigits))

/**
 * A workbook's number for a column: in a column of text as the sheet shows it, otherwise as a person would
 * type it under the import's conventions, so that reading it back gives exactly this number or date.
 */
export function renderNumber(value: number, of: CellFormat, use: ColumnUse, rendering: Rendering): string {
  const { section, minus } = sectionOf(of, value)
  const { format, tokens } = section
  const { decimal } = rendering
  if (format !== 'number' && format !== 'percent') {
    const text = renderDay(value, format, rendering)
    return use === 'text' || use === 'number' ? unreadText('#DATE', text) : text
  }
  if (use === 'text' && Math.abs(value) < 10 ** shownDigits)
    return showNumber(toDigits(value), tokens, { minus, decimal })
  if (use !== 'other' && value !== 0 && tokens?.length === 0)
    return unreadText('#NOT SHOWN', renderPlain(value, decimal))
  if (format === 'percent') return `${renderPlain(toDigits(value).times(100).toNumber(), decimal)}%`
  if (use === 'number' && losesDigits(value))
    return unreadText('#DIGITS', withMark(new Big(value).toFixed(), decimal ?? '.'))
  return renderPlain(value, decimal)
}

/** In a larger number, 15 digits have no place for a fourth decimal. In a smaller one, the others are noise. */
const fewDecimals = 10 ** 11
const losesDigits = (value: number) =>
  Math.abs(value) >= fewDecimals &&
  Math.abs(value) < 10 ** shownDigits &&
  Number(value.toPrecision(shownDigits)) !== value

function renderPlain(value: number, decimal: Conventions['decimal']): string {
  // Beyond 15 digits before the point, the typed digits are lost. The cell reader rejects this form.
  if (Math.abs(value) >= 10 ** shownDigits)
    return withMark(value.toExponential(shownDigits - 1).replace('e', 'E'), decimal ?? '.')
  const digits = toDigits(value).toFixed()
  if (decimal !== undefined) return withMark(digits, decimal)
  // 45.123 would have two readings; 45.1230 is the same number and has one.
  return /^-?[1-9]\d{0,2}\.\d{3}$/.test(digits) ? `${digits}0` : digits
}

/** The widest number, in characters, that the format `General` shows in full, unless it is a whole number. */
const generalWidth = 11

const isGeneral = ({ literal, text }: Token) => !literal && /^(general|@)$/i.test(text)
const isPlace = ({ literal, text }: Token) => !literal && /[0#]/.test(text)

/**
 * A number exactly as the sheet shows it: plain, or whole with leading zeros, and with the words of its format. Any other
 * form is refused: an id has none, and separators depend on the language of the spreadsheet.
 */
function showNumber(
  number: Big,
  tokens: Section['tokens'],
  { minus, decimal }: { minus: boolean; decimal: DecimalMark | undefined },
): string {
  const first = tokens?.findIndex((token) => !token.literal) ?? 0
  const signs = tokens?.filter((token) => !token.literal) ?? []
  const digits = digitsOf(number.abs(), signs, decimal)
  const isOneRun = tokens?.slice(first, first + signs.length).every((token) => !token.literal) ?? false
  if (tokens === undefined || digits === undefined || !isOneRun)
    return unreadText('#FORMATTED', number.toFixed())
  const words = tokens.map(({ literal, text }, at) => (literal ? text : at === first ? digits : ''))
  const shown = words.join('').trim()
  return shown === '' ? unreadText('#NOT SHOWN', number.toFixed()) : `${minus ? '-' : ''}${shown}`
}

/** What the signs of a format show; undefined if they are neither `General` nor the places of whole numbers. */
function digitsOf(size: Big, signs: readonly Token[], decimal: DecimalMark = '.'): string | undefined {
  if (signs.length === 1 && signs.every(isGeneral)) {
    const digits = size.toFixed()
    return digits.includes('.') && digits.length > generalWidth ? undefined : withMark(digits, decimal)
  }
  const zeros = signs.filter(({ text }) => text === '0').length
  const whole = size.round(0).toFixed()
  return signs.every(isPlace) ? (whole === '0' ? '' : whole).padStart(zeros, '0') : undefined
}

/** A text as the sheet shows it, with the words of its format. */
export function renderText(text: string, { text: tokens }: CellFormat): string {
  if (tokens === undefined) return text
  const shown = tokens.map((token) => (isTextSign(token) ? text : token.text)).join('')
  return shown.trim() === '' ? unreadText('#NOT SHOWN', text) : shown
}

const millisecondsPerDay = 86_400_000
const lastDay = 2_958_465

function renderDay(value: number, format: NumberFormat, rendering: Rendering): string {
  const { decimal, dates, is1904 } = rendering
  const seconds = Math.round(value * 86_400)
  const days = Math.floor(seconds / 86_400)
  const time = new Date((seconds - days * 86_400) * 1000).toISOString().slice(11, 19)
  if (format === 'time' && days === 0) return time
  if (format === 'time' || days < (is1904 ? 0 : 1) || days > lastDay) return renderPlain(value, decimal)
  const date = writeDate(toDay(days, is1904), dates ?? 'ymd')
  return time === '00:00:00' ? date : `${date} ${time}`
}

/** The real date in a cell, as YYYY-MM-DD; undefined for other numbers. */
export function dayOf(value: number, of: CellFormat, is1904: boolean): string | undefined {
  const { format } = sectionOf(of, value).section
  const days = Math.floor(value)
  if ((format !== 'date' && format !== 'dateTime') || days < 1 || days > lastDay) return undefined
  return toDay(days, is1904)
}

/** The serial number of a date in ISO 8601, whatever its time zone; undefined for any other text. */
export function serialOf(text: string, is1904: boolean): number | undefined {
  const [, day = '', time = '00:00'] = /^(\d{4}-\d\d-\d\d)(?:T([\d:.]+))?Z?$/.exec(text) ?? []
  const serial = (Date.parse(`${day}T${time}Z`) - epochOf(is1904, 61)) / millisecondsPerDay
  return serial >= 61 && serial <= lastDay ? serial : undefined
}

/** The date of a serial number. */
function toDay(days: number, is1904: boolean): string {
  return new Date(epochOf(is1904, days) + days * millisecondsPerDay).toISOString().slice(0, 10)
}

/** The 1900 system counts a 29 February 1900 that did not exist, so earlier days are off by one. */
const epochOf = (is1904: boolean, days: number): number =>
  is1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, days < 60 ? 31 : 30)
