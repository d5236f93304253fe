let counts: Intl.NumberFormat | undefined

/** 12345 → `12,345`. */
export function formatCount(count: number): string {
  // Created when first needed, because it takes ten milliseconds and most processes format no count.
  counts ??= new Intl.NumberFormat('en')
  return counts.format(count)
}

/** 1 and `requests` → `1 request`. */
export const formatCountOf = (count: number, nouns: string): string =>
  `${formatCount(count)} ${count === 1 ? nouns.replace(/s$/, '') : nouns}`

/** `1 was`, `2 were`. */
export const formatWere = (count: number): string => `${formatCount(count)} ${count === 1 ? 'was' : 'were'}`

/** `2026-11-21 02:00:07 UTC`: pages are read in unknown time zones. */
export function formatTime(at: number | string, to: 'seconds' | 'minutes' = 'seconds'): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const end = to === 'minutes' ? 16 : 19
  return `${date.toISOString().slice(0, end).replace('T', ' ')} UTC`
}

/** `2026-11-20 23:00:07 -03:00`: in this process's time zone, for its terminal and the pages it writes. */
export function formatLocalTime(at: number | string | Date, to: 'seconds' | 'minutes' = 'seconds'): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const offset = -date.getTimezoneOffset()
  const wall = new Date(date.getTime() + offset * 60_000).toISOString()
  const digits = (minutes: number) => String(Math.trunc(Math.abs(minutes))).padStart(2, '0')
  const zone = `${offset < 0 ? '-' : '+'}${digits(offset / 60)}:${digits(offset % 60)}`
  return `${wall.slice(0, to === 'minutes' ? 16 : 19).replace('T', ' ')} ${zone}`
}

/** Formats a number of a person's sheet with its decimal mark and thousands separators: `1.883,50`. */
export function formatAmount(digits: string, mark: ',' | '.' | undefined): string {
  if (mark === undefined) return digits
  const [whole = '', fraction] = digits.split('.')
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, mark === ',' ? '.' : ',')
  return fraction === undefined ? grouped : `${grouped}${mark}${fraction}`
}

/** Formats a duration, with at most two units. */
export function formatDuration(ms: number): string {
  if (ms < 950) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A moment (ISO 8601), shown in the reader's time zone. */
export interface Time {
  time: string
}

/** Text that a page shows as a link to a file beside it, or as a state in its colour. */
interface Mark {
  text: string
  /** The path of the file, relative to the page's folder. */
  href?: string
  tone?: Tone
}

export type Tone = 'good' | 'doubtful' | 'bad' | 'neutral'

/** An exact decimal: a page separates its thousands by space alone, so that a copy has its digits. */
export interface Amount {
  amount: string
}

export type Cell = string | number | Time | Amount | Mark

/** `showTime`: local for terminals and pages; UTC for the Temporal UI, whose readers may be anywhere. */
export function cellText(cell: Cell, showTime: (at: string) => string = formatLocalTime): string {
  if (typeof cell === 'number') return formatCount(cell)
  if (typeof cell === 'string') return cell
  if ('time' in cell) return showTime(cell.time)
  return 'amount' in cell ? cell.amount : cell.text
}

/** Amounts are strings, so that no digit is lost. */
const isNumeric = (cell: Cell | undefined): boolean =>
  typeof cell === 'object'
    ? 'amount' in cell
    : typeof cell === 'number' || cell === '' || (cell !== undefined && /^-?\d[\d.,]*$/.test(cell))

/** The columns that hold only numbers and are right-aligned. */
export const numericColumns = ({
  head,
  rows,
}: {
  head: readonly string[]
  rows: readonly (readonly Cell[])[]
}): boolean[] =>
  head.map(
    (_, column) => rows.some((row) => row[column] !== '') && rows.every((row) => isNumeric(row[column])),
  )

/** Formats columns as wide as their widest cell. Number cells are counts. */
export function formatTable(table: { head: readonly string[]; rows: readonly (readonly Cell[])[] }): string {
  const cells = [
    table.head.map(toPrintableLine),
    ...table.rows.map((row) => row.map((cell) => toPrintableLine(cellText(cell)))),
  ]
  const widths = table.head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const isRight = numericColumns(table)
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        isRight[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return cells.map(line).join('\n')
}

/**
 * Characters that control a terminal instead of being shown: C0 except tab and line feed, DEL, C1, and
 * characters that change text direction or start a line. A cell, a service's message or a run id may contain
 * them.
 */
const unprintable = /[^\P{Cc}\t\n]|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * Makes text safe for a terminal or a log; an escape character becomes `\u001b`. JSON text remains the same
 * document.
 */
export const toPrintable = (text: string): string => text.replaceAll(unprintable, escape)

/** Same, for text that must stay on one line, such as a table cell. */
export const toPrintableLine = (text: string): string => toPrintable(text).replaceAll('\n', escape)
