import { toPrintableLine } from '../../core/runs/view/printable.ts'

const counts = new Intl.NumberFormat('en-US')

/** 12345 → `12,345`. */
export function formatCount(count: number): string {
  return counts.format(count)
}

/** A length of time as people say it, with two units at most. */
export function formatDuration(ms: number): string {
  if (ms < 950) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Columns as wide as their widest cell; numbers to the right. Cells that are numbers are counts. */
export function formatTable({
  head,
  rows,
}: {
  head: readonly string[]
  rows: readonly (readonly (string | number)[])[]
}): string {
  const cells = [
    head.map(toPrintableLine),
    ...rows.map((row) =>
      row.map((cell) => (typeof cell === 'number' ? formatCount(cell) : toPrintableLine(cell))),
    ),
  ]
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const isNumeric = head.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'),
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        isNumeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return cells.map(line).join('\n')
}
