/** Longer names are no slips of other ones. */
const longest = 100

/** Letters that are compared for all suggestions of one kind: a few hundredths of a second, after which nothing is suggested any more. */
const mostCompared = 2_000_000

/** The known name that a mistyped one most likely stood for, or undefined where none is near. */
export const nearestName = (name: string, known: Iterable<string>): string | undefined =>
  createNearestName(() => known)(name)

/**
 * The same for many names and one list: each name is looked for once, and the work for all of them is bounded,
 * whatever somebody's file holds.
 */
export function createNearestName(known: () => Iterable<string>): (name: string) => string | undefined {
  const found = new Map<string, string | undefined>()
  let left = mostCompared
  return (name) => {
    if (found.has(name)) return found.get(name)
    if (name.length > longest || left <= 0) return undefined
    const wanted = name.toLowerCase()
    // A third of the letters wrong is still a slip; more is another word.
    let best: { name: string | undefined; distance: number } = {
      name: undefined,
      distance: name.length / 3 + 1,
    }
    for (const candidate of known()) {
      left -= 1
      if (left <= 0) return undefined
      if (Math.abs(candidate.length - wanted.length) >= best.distance) continue
      const { distance, compared } = editDistance(wanted, candidate.toLowerCase(), best.distance)
      left -= compared
      if (distance < best.distance) best = { name: candidate, distance }
    }
    found.set(name, best.name)
    return best.name
  }
}

/** Letters to insert, delete or replace to make `from` into `to`; once it is not below `most`, no longer counted. */
function editDistance(from: string, to: string, most: number): { distance: number; compared: number } {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    let least = row
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1)
      const distance = Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1)
      current.push(distance)
      least = Math.min(least, distance)
    }
    if (least >= most) return { distance: least, compared: row * to.length }
    previous = current
  }
  return { distance: previous[to.length]!, compared: from.length * to.length }
}
