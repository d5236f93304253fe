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
    if (name.length > longest) return undefined
    const wanted = name.toLowerCase()
    let nearest: string | undefined
    // With up to a third of the letters wrong it is a typo; beyond that it is another word.
    let least = name.length / 3 + 1
    for (const candidate of known()) {
      const isComparable = Math.abs(candidate.length - wanted.length) < least
      left -= isComparable ? wanted.length * candidate.length : 1
      if (left <= 0) return undefined
      const distance = isComparable ? editDistance(wanted, candidate.toLowerCase()) : least
      if (distance < least) [nearest, least] = [candidate, distance]
    }
    found.set(name, nearest)
    return nearest
  }
}

/** How many letters to insert, delete or replace to turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replaced = above[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, above[column]! + 1, current[column - 1]! + 1))
    }
    above = current
  }
  return above[to.length]!
}
