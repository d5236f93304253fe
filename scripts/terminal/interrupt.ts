/** Under npm one keystroke can come twice, from the terminal and passed on by npm (where its shell hands over to us). */
const sameKeystrokeMs = 300

/**
 * What Ctrl-C does from here on, until released: `first` is asked to end things cleanly, `second` to let go of them.
 * A third one ends the process at once. SIGTERM counts as Ctrl-C. An error in either is an uncaught one.
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
