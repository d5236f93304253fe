import { cutBelow } from './page-choice.ts'
import { toTimestamp } from './instant.ts'
import { toLink } from './link.ts'
import type { Pass } from './pass.ts'
import { Search } from './link-search.ts'
import type { Cut, Window } from './window.ts'

/** Records of one key that reach over the end of a window, and the order in which their places are counted. */
export interface Group {
  at: number
  /** Newest first: for a group that nothing is newer than, so that its places begin at 0 for certain. */
  descending: boolean
}

/** Where a group lies: its first place, and the first place behind it. */
export interface Extent {
  kind: 'extent'
  first: number
  behind: number
}

/**
 * What ends the work on a group: a window that holds all of it and links; that nothing is newer than it any more,
 * so that the chain must look at the top again; or that no such thing can be had.
 */
export type Decided =
  | { kind: 'held'; window: Window }
  | { kind: 'moved' }
  | { kind: 'capped' }
  | { kind: 'broken'; reason: string }

export type Looked =
  | Decided
  | { kind: 'window'; window: Window }
  | { kind: 'beyond'; low: number }
  | { kind: 'lost' }

const timesSearched = 12

/** Asks for a window near a group; decides the matter where it holds the group whole. */
export async function look(
  pass: Pass,
  group: Group,
  cut: Cut,
): Promise<
  Decided | { kind: 'window'; window: Window } | { kind: 'beyond'; low: number } | { kind: 'lost' }
> {
  const answer = await pass.source.ask(cut, group)
  if (answer.kind === 'wrong') return { kind: 'broken', reason: answer.reason }
  if (answer.kind === 'window' && toLink(answer.window, pass.frontier) === 'links')
    return { kind: 'held', window: answer.window }
  return answer
}

/** Finds both borders of a group, one after the other. */
export async function measure(pass: Pass, group: Group, guess: Partial<Extent>): Promise<Decided | Extent> {
  const key = group.descending ? -group.at : group.at
  const behind = await findBorder(pass, group, { isBeyond: (other) => other > key, guess: guess.behind })
  if (behind.kind !== 'border') return behind
  const first = await findBorder(pass, group, {
    isBeyond: (other) => other >= key,
    guess: guess.first ?? Math.max(0, behind.low - 1),
  })
  return first.kind === 'border' ? { kind: 'extent', first: first.place, behind: behind.place } : first
}

/** The first place whose key is beyond a border; where none is, the place behind the last record, by its word. */
async function findBorder(
  pass: Pass,
  group: Group,
  { isBeyond, guess }: { isBeyond: (key: number) => boolean; guess: number | undefined },
): Promise<Decided | { kind: 'border'; place: number; low: number }> {
  const search = new Search(pass.source.sizes, guess)
  while (search.tries < timesSearched) {
    const looked = await look(pass, group, cutBelow(search.next(), pass.source.sizes))
    if (looked.kind === 'lost') search.sawNothing()
    else if (looked.kind === 'beyond') search.sawOver(looked.low)
    else if (looked.kind !== 'window') return looked
    else {
      const { low, keys, page, atEnd } = looked.window
      const at = keys.findIndex(isBeyond)
      if (at > 0 || (at === 0 && page === 1)) return { kind: 'border', place: low + at, low }
      if (at === 0) search.sawOver(low)
      // Where the list ends is only the service's word, so oldest first it is no border of a group.
      else if (atEnd)
        return group.descending ? { kind: 'border', place: low + keys.length, low } : { kind: 'moved' }
      else search.sawUnder(low + keys.length - 1)
    }
  }
  return { kind: 'broken', reason: `${inWords(group)} moved while its borders were looked for` }
}

export function inWords({ at }: Group): string {
  return `the group of records of ${toTimestamp(at)}`
}
