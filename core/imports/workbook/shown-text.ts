import type { Big } from 'big.js'
import type { DecimalMark } from '../cells/numbers.ts'
import { type Section, isTextSign, type Token } from './number-format.ts'
import { type Unread, unreadText } from './unread-cells.ts'

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
