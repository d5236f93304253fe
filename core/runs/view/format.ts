import { toPrintableLine } from './printable.ts'

const counts = new Intl.NumberFormat('en')

/** 12345 → `12,345`. */
export const formatCount = (count: number): string => counts.format(count)

/** `2026-11-21 02:00:07 UTC`: a page is read in time zones that nobody knows. */
export function formatTime(at: number | string, to: 'seconds' | 'minutes' = 'seconds'): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const end = to === 'minutes' ? 16 : 19
  return `${date.toISOString().slice(0, end).replace('T', ' ')} UTC`
}

/** `2026-11-20 23:00:07 -03:00`: in the time zone of this process, for its terminal and the pages that it writes. */
export function formatLocalTime(at: number | string | Date, to: 'seconds' | 'minutes' = 'seconds'): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const offset = -date.getTimezoneOffset()
  const wall = new Date(date.getTime() + offset * 60_000).toISOString()
  const digits = (minutes: number) => String(Math.trunc(Math.abs(minutes))).padStart(2, '0')
  const zone = `${offset < 0 ? '-' : '+'}${digits(offset / 60)}:${digits(offset % 60)}`
  return `${wall.slice(0, to === 'minutes' ? 16 : 19).replace('T', ' ')} ${zone}`
}

/** A number of a person's sheet, with its decimal mark and with groups of thousands: `1.883,50`. */
export function formatAmount(digits: string, mark: ',' | '.' | undefined): string {
  if (mark === undefined) return digits
  const [whole = '', fraction] = digits.split('.')
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, mark === ',' ? '.' : ',')
  return fraction === undefined ? grouped : `${grouped}${mark}${fraction}`
}

/** A duration, with two units at most. */
export function formatDuration(ms: number): string {
  if (ms < 950) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A moment (ISO 8601), shown in the time zone of whoever reads it. */
export interface Time {
  time: string
}

export type Cell = string | number | Time

/** `showTime`: local on a terminal and a page, UTC in the Temporal UI, whose readers may be anywhere. */
export function cellText(cell: Cell, showTime: (at: string) => string = formatLocalTime): string {
  if (typeof cell === 'number') return formatCount(cell)
  return typeof cell === 'string' ? cell : showTime(cell.time)
}

/** Amounts are texts, so that no digit is lost. */
const isNumeric = (cell: Cell | undefined): boolean =>
  typeof cell === 'number' || cell === '' || (typeof cell === 'string' && /^-?\d[\d.,]*$/.test(cell))

/** Which columns hold numbers only, and are aligned right. */
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

/** Columns as wide as their widest cell. Cells that are numbers are counts. */
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
