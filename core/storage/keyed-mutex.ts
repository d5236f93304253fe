/** Runs tasks under the same name one at a time, in the order in which they arrive. */
export interface Turns {
  take<T>(name: string, work: () => Promise<T>): Promise<T>
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>()
  return {
    async take(name, work) {
      const before = last.get(name) ?? Promise.resolve()
      const own = before.then(work, work)
      last.set(name, own)
      try {
        return await own
      } finally {
        if (last.get(name) === own) last.delete(name)
      }
    },
  }
}
