const facts = new Set<() => string>()

/** Adds a fact to the message of the running test if it fails: a timeout alone does not say what the test waited for. */
export function addFact(fact: () => string) {
  facts.add(fact)
  return {
    remove: () => void facts.delete(fact),
    /** False after the end of the test. */
    isOfRunningTest: () => facts.has(fact),
  }
}

/** The facts of the test that ends now. */
export function takeFacts(): string[] {
  const taken = [...facts]
  facts.clear()
  return taken.map((fact) => fact())
}
