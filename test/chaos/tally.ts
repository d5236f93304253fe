/** Counts what happened, by name. */
export class Tally {
  readonly counts = new Map<string, number>()

  add(name: string, number = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + number)
  }

  /** A line for each count. */
  lines(): string[] {
    return [...this.counts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, number]) => `${String(number).padStart(8)}  ${name}`)
  }
}
