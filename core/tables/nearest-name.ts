/** Longer names are not typos of known ones. */
const longest = 100

/**
 * Budget of letters compared for all suggestions of one kind: a few hundredths of a second, after which it
 * suggests nothing more.
 */
const mostCompared = 500_000

/** The known name that a mistyped one most likely meant, or undefined if none is close. */
export const nearestName = (name: string, known: Iterable<string>): string | undefined =>
  createNearestName(() => known)(name)

/**
 * The same for many names and one list: looks each name up once and bounds the total work, whatever the file
 * holds.
 */
export function createNearestName(known: () => Iterable<string>): (name: string) => string | undefined {
  const found = new Map<string, string | undefined>()
  let left = mostCompared
  return (name) => {
    if (found.has(name)) return found.get(name)
    if (name.length > longest || left <= 0) return undefined
    const wanted = name.toLowerCase()
    // With up to a third of the letters wrong it is a typo; beyond that it is another word.
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

/** The number of letters to insert, delete or replace to turn `from` into `to`; stops counting at `most`. */
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
