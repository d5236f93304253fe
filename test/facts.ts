const facts = new Set<() => string>()

/**
 * Adds a fact to the message of the running test if it fails: a timeout alone does not say what the test waited for.
 * Returns what takes it back.
 */
export function addFact(fact: () => string): () => void {
  facts.add(fact)
  return () => void facts.delete(fact)
}

/** The facts of the test that ends now. */
export function takeFacts(): string[] {
  const texts = [...facts].map((fact) => fact())
  facts.clear()
  return texts
}
