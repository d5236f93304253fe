import { afterEach } from 'vitest'

const facts = new Set<() => string>()

/**
 * Adds a fact to the message of the running test if it fails: a timeout alone does not say what the test waited for.
 * Returns what takes it back.
 */
export function addFact(fact: () => string): () => void {
  facts.add(fact)
  return () => void facts.delete(fact)
}

// A set-up file of Vitest, so that this is called for each test.
afterEach(({ task }) => {
  const texts = [...facts].map((fact) => fact())
  facts.clear()
  for (const error of task.result?.errors ?? []) {
    const message = [error.message, ...texts].join('\n')
    error.stack = error.stack?.replace(error.message, () => message) ?? message
    error.message = message
  }
})
