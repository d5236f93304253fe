/** In ms. Under npm, one keystroke can arrive twice: from the terminal, and passed on by npm. */
const sameKeystrokeMs = 300

/**
 * Handles Ctrl-C until released: the first press calls `first` (stop cleanly), the second calls `second` (detach),
 * and a third ends the process immediately. SIGTERM counts as Ctrl-C. An error in a handler becomes an uncaught
 * exception.
 */
export function onInterrupt(handlers: {
  first: () => void | Promise<void>
  second: () => void | Promise<void>
}): Disposable {
  const steps = [handlers.first, handlers.second, () => process.exit(130)]
  let last = Number.NEGATIVE_INFINITY
  const listen = () => {
    const now = performance.now()
    if (now - last < sameKeystrokeMs) return
    last = now
    void steps.shift()?.()
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, listen)
  return {
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, listen)
    },
  }
}
