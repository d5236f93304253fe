/**
 * This process's attempts at sending a run's changes. There may be two: when Temporal was unreachable for a
 * while, it has given up on the first, which does not know that yet.
 */
export interface Attempts {
  /** Runs `work` after the previous attempt has ended; the signal tells `work` to end, too. */
  take<T>(options: {
    run: string
    signal: AbortSignal
    work: (signal: AbortSignal) => Promise<T>
  }): Promise<T>
  /** Ends the attempt of a run; resolves when it has stopped completely. */
  end(run: string): Promise<void>
}

export function createAttempts(): Attempts {
  const active = new Map<string, { stop: AbortController; ended: Promise<unknown> }>()
  const end = async (run: string): Promise<void> => {
    const attempt = active.get(run)
    attempt?.stop.abort(new Error('another step of this run takes over'))
    await attempt?.ended
  }
  return {
    end,
    async take({ run, signal, work }) {
      const stop = new AbortController()
      const before = end(run)
      const done = before.then(() => work(AbortSignal.any([signal, stop.signal])))
      const mine = { stop, ended: done.catch(() => {}) }
      active.set(run, mine)
      try {
        return await done
      } finally {
        if (active.get(run) === mine) active.delete(run)
      }
    },
  }
}
