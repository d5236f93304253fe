/** Schedules what happens some time after a request, answered or not. */
export class Later {
  readonly #waiting = new Map<NodeJS.Timeout, () => void>()

  schedule(seconds: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#waiting.delete(timer)
      act()
    }, seconds * 1000)
    this.#waiting.set(timer, act)
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Runs everything now, in the order in which it was scheduled. */
  landAll(): void {
    for (const [timer, act] of this.#waiting) {
      clearTimeout(timer)
      this.#waiting.delete(timer)
      act()
    }
  }

  close(): void {
    for (const timer of this.#waiting.keys()) clearTimeout(timer)
    this.#waiting.clear()
  }
}
