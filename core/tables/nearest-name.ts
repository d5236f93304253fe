/** The known name that a mistyped one most likely stood for, or undefined where none is near. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  // A third of the letters wrong is still a slip; more is another word.
  let best: { name: string | undefined; distance: number } = {
    name: undefined,
    distance: name.length / 3 + 1,
  }
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < best.distance) best = { name: candidate, distance }
  }
  return best.name
}

/** Letters to insert, delete or replace to make `from` into `to`. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1))
    }
    previous = current
  }
  return previous[to.length]!
}
