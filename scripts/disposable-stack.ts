/** The subset of `AsyncDisposableStack` used here, which Node 22 lacks. */
class Stack {
  #closings: (() => unknown)[] = []

  defer(close: () => unknown): void {
    this.#closings.push(close)
  }

  adopt<T>(value: T, close: (value: T) => unknown): T {
    this.defer(() => close(value))
    return value
  }

  use<T extends Partial<AsyncDisposable & Disposable> | null | undefined>(value: T): T {
    if (value === null || value === undefined) return value
    const close = value[Symbol.asyncDispose] ?? value[Symbol.dispose]
    if (close === undefined) throw new TypeError('not disposable')
    this.defer(() => close.call(value))
    return value
  }

  move(): Stack {
    const moved = new Stack()
    moved.#closings = this.#closings
    this.#closings = []
    return moved
  }

  /** Disposes all of them in reverse order, then throws the first failure. */
  async disposeAsync(): Promise<void> {
    const failures: unknown[] = []
    for (let close = this.#closings.pop(); close !== undefined; close = this.#closings.pop()) {
      try {
        await close()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disposeAsync()
  }
}

const global = globalThis as { AsyncDisposableStack?: unknown }
global.AsyncDisposableStack ??= Stack
