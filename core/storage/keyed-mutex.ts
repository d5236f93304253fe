/** Runs tasks under the same name one at a time, in the order in which they arrive. */
export interface KeyedMutex {
  runExclusive<T>(name: string, work: () => Promise<T>): Promise<T>
}

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>()
  return {
    async runExclusive(name, work) {
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
