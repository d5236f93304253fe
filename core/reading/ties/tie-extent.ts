import { choosePageBelow } from '../pages/page-choice.ts'
import { toTimestamp } from '../instant.ts'
import { toLink } from '../chain/link.ts'
import type { Pass } from '../pass.ts'
import { BorderSearch } from '../chain/border-search.ts'
import type { PageChoice, Window } from '../chain/window.ts'

/** A tie group that extends past the end of a window, and the order in which its places are counted. */
export interface TieGroup {
  at: number
  /** Newest first: for a group without newer records, so its places certainly begin at 0. */
  descending: boolean
}

/** The places of a group: its first place, and the first place after it. */
export interface TieExtent {
  kind: 'extent'
  first: number
  end: number
}

/**
 * How the work on a group ends. `held`: a window holds all of it and links. `moved`: no record is newer than the group
 * any more, so the chain must restart at the top. `broken`: neither could be established.
 */
export type Decided =
  | { kind: 'held'; window: Window }
  | { kind: 'moved' }
  | { kind: 'capped' }
  | { kind: 'broken'; reason: string }

export type WindowLookup =
  | Decided
  | { kind: 'window'; window: Window }
  | { kind: 'beyond'; low: number }
  | { kind: 'lost' }

/**
 * Steps double until they pass a border, then halve: on a list at rest, 30 requests find any border of a list of a
 * million records.
 */
const timesSearched = 40

/** Requests a window near a group; returns `held` if it contains the whole group. */
export async function lookUpWindow(
  pass: Pass,
  group: TieGroup,
  choice: PageChoice,
): Promise<
  Decided | { kind: 'window'; window: Window } | { kind: 'beyond'; low: number } | { kind: 'lost' }
> {
  const answer = await pass.source.ask(choice, group)
  if (answer.kind === 'wrong') return { kind: 'broken', reason: answer.reason }
  if (answer.kind === 'window' && toLink(answer.window, pass.frontier) === 'links')
    return { kind: 'held', window: answer.window }
  return answer
}

/** Finds both borders of a group, one after the other. */
export async function measure(
  pass: Pass,
  group: TieGroup,
  guess: Partial<TieExtent>,
): Promise<Decided | TieExtent> {
  const key = group.descending ? -group.at : group.at
  const end = await findBorder(pass, group, { isBeyond: (other) => other > key, guess: guess.end })
  if (end.kind !== 'border') return end
  const first = await findBorder(pass, group, {
    isBeyond: (other) => other >= key,
    guess: guess.first ?? Math.max(0, end.low - 1),
  })
  return first.kind === 'border' ? { kind: 'extent', first: first.place, end: end.place } : first
}

/** The first place whose key is beyond a border; if there is none, the place after the last record, as the service says. */
async function findBorder(
  pass: Pass,
  group: TieGroup,
  { isBeyond, guess }: { isBeyond: (key: number) => boolean; guess: number | undefined },
): Promise<Decided | { kind: 'border'; place: number; low: number }> {
  const search = new BorderSearch(pass.source.sizes, guess)
  while (search.tries < timesSearched) {
    const found = await lookUpWindow(pass, group, choosePageBelow(search.next(), pass.source.sizes))
    if (found.kind === 'lost') search.noAnswer()
    else if (found.kind === 'beyond') search.sawOver(found.low)
    else if (found.kind !== 'window') return found
    else {
      const { low, keys, page, atEnd } = found.window
      const at = keys.findIndex(isBeyond)
      if (at > 0 || (at === 0 && page === 1)) return { kind: 'border', place: low + at, low }
      if (at === 0) search.sawOver(low)
      // The end of the list is only the service's claim, so, oldest first, it cannot be the border of a group.
      else if (atEnd)
        return group.descending ? { kind: 'border', place: low + keys.length, low } : { kind: 'moved' }
      else search.sawUnder(low + keys.length - 1)
    }
  }
  return broken(pass, group, `could not be measured: ${timesSearched} requests did not find where it ends`)
}

/** The end of the work on a group that cannot be proven; where a page was refused, that is why. */
export function broken({ source }: Pass, { at }: TieGroup, why: string): Decided {
  const hint = source.key === 'updated' ? '; a full export does not need this order' : ''
  const reason = `the group of records at ${toTimestamp(at)} ${why}`
  return { kind: 'broken', reason: `${source.unserved ?? reason}${hint}` }
}
