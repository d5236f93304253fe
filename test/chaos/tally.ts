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

  /** A line for each count, then one for each kind of times. */
  lines(): string[] {
    const sorted = <Value>(of: Map<string, Value>) => [...of].toSorted(([a], [b]) => (a < b ? -1 : 1))
    return [
      ...sorted(this.counts).map(([name, number]) => `${String(number).padStart(8)}  ${name}`),
      ...sorted(this.times).map(([name, all]) => {
        const ms = all.toSorted((a, b) => a - b)
        const median = toSeconds(ms[Math.floor(ms.length / 2)]!)
        return `${String(ms.length).padStart(8)}  median ${median}, longest ${toSeconds(ms.at(-1)!)}  ${name}`
      }),
    ]
  }
}

const toSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
