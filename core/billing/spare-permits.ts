import type { Permit } from './permits.ts'

/** A permit with less time left is of no use: a write is claimed first, which takes 2 to 20 ms. */
const leastValidMs = 15
/** Renewed this long before the last one is due: an answer takes 10 ms where replies keep the process busy. */
const renewMs = 20

/** Permits that no request has yet: what a worker that is alone gets beyond what it asked for. */
export class SparePermits {
  /** Soonest first. */
  #permits: Permit[] = []
  /** Whether one was used since the store was asked last: other requests will follow. */
  #isUsed = false

  get isEmpty(): boolean {
    return this.#permits.length === 0
  }

  /** Whether to ask for more now, so that no request has to wait for the answer. */
  get runLow(): boolean {
    const last = this.#permits.at(-1)
    return this.#isUsed && (last === undefined || last.dueAt - performance.now() < renewMs)
  }

  /** The store is being asked. */
  asked(): void {
    this.#isUsed = false
  }

  add(permits: readonly Permit[]): void {
    this.#permits.push(...permits)
  }

  /** Takes the soonest that is valid for long enough. */
  take(): Permit | undefined {
    const permit = this.#permits.find(({ voidAt }) => voidAt - performance.now() > leastValidMs)
    this.#permits = permit === undefined ? [] : this.#permits.slice(this.#permits.indexOf(permit) + 1)
    this.#isUsed ||= permit !== undefined
    return permit
  }

  /** None is asked for ahead until a request asks: the store may not know yet why these are void. */
  clear(): void {
    this.#permits = []
    this.#isUsed = false
  }
}
