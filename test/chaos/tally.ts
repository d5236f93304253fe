import type { PlayedPart } from './record.ts'

/** Counts what happened and collects how long things took, by name. */
export class Tally {
  readonly counts = new Map<string, number>()
  readonly times = new Map<string, number[]>()

  add(name: string, number = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + number)
  }

  /** How long something took, in ms. */
  took(name: string, ms: number): void {
    this.times.set(name, [...(this.times.get(name) ?? []), ms])
  }

  /** The totals, by name. */
  totals(): Pick<PlayedPart, 'counts' | 'times'> {
    const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)
    return {
      counts: Object.fromEntries([...this.counts].toSorted(byName)),
      times: Object.fromEntries(
        [...this.times].toSorted(byName).map(([name, all]) => [name, summarize(all)] as const),
      ),
    }
  }

  /** A line for each count, then one for each kind of times. */
  lines(): string[] {
    const { counts, times } = this.totals()
    return [
      ...Object.entries(counts).map(([name, number]) => `${String(number).padStart(8)}  ${name}`),
      ...Object.entries(times).map(
        ([name, { number, medianMs, longestMs }]) =>
          `${String(number).padStart(8)}  median ${toSeconds(medianMs)}, longest ${toSeconds(longestMs)}  ${name}`,
      ),
    ]
  }
}

const toSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

function summarize(all: readonly number[]) {
  const sorted = all.toSorted((a, b) => a - b).map(Math.round)
  return { number: all.length, medianMs: sorted[Math.floor(all.length / 2)]!, longestMs: sorted.at(-1)! }
}
