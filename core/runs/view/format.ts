const counts = new Intl.NumberFormat('en')

export const formatCount = (count: number): string => counts.format(count)

/** `2026-11-21 02:00:07 UTC`: a page is read where nobody knows the reader's zone. */
export function formatTime(at: number | string): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** A length of time, with two units at most. */
export function formatTook(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
