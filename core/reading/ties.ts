import { BorderSearch, choosePageBelow } from './find-window.ts'
import { toTimestamp } from '../billing/instants.ts'
import type { ReadStep } from './range-state.ts'
import type { Reading } from './reading.ts'
import { identityOf } from './record.ts'
import { newestOf, placeAbove, toLink, type PageChoice, type Window } from './window.ts'

/** A tie group that extends past the end of a window, and the order in which its places are counted. */
interface TieGroup {
  at: number
  /** Newest first: for a group without newer records, so its places certainly begin at 0. */
  descending: boolean
}

/** The places of a group: its first place, and the first place after it. */
interface TieExtent {
  kind: 'extent'
  first: number
  end: number
}

/**
 * How the work on a group ends. `enclosed`: one window holds all of it and links. `moved`: no record is newer than the group
 * any more, so the chain must restart at the top. `broken`: neither could be established.
 */
type Decided =
  | { kind: 'enclosed'; window: Window }
  | { kind: 'moved' }
  | { kind: 'capped' }
  | { kind: 'broken'; reason: string }

type WindowLookup =
  | Decided
  | { kind: 'window'; window: Window }
  | { kind: 'beyond'; low: number }
  | { kind: 'lost' }

/**
 * Steps double until they pass a border, then halve: on a list at rest, 30 requests find any border of a list of a
 * million records.
 */
const timesSearched = 40

/** Requests a window near a group; returns `enclosed` if it contains the whole group. */
async function lookUpWindow(reading: Reading, group: TieGroup, choice: PageChoice): Promise<WindowLookup> {
  const answer = await reading.fetcher.ask(choice, group)
  if (answer.kind === 'wrong') return { kind: 'broken', reason: answer.reason }
  if (answer.kind === 'window' && toLink(answer.window, reading.frontier) === 'links')
    return { kind: 'enclosed', window: answer.window }
  return answer
}

/** Finds both borders of a group, one after the other. */
async function measure(
  reading: Reading,
  group: TieGroup,
  guess: Partial<TieExtent>,
): Promise<Decided | TieExtent> {
  const key = group.descending ? -group.at : group.at
  const end = await findBorder(reading, group, { isBeyond: (other) => other > key, guess: guess.end })
  if (end.kind !== 'border') return end
  const first = await findBorder(reading, group, {
    isBeyond: (other) => other >= key,
    guess: guess.first ?? Math.max(0, end.low - 1),
  })
  return first.kind === 'border' ? { kind: 'extent', first: first.place, end: end.place } : first
}

/** The first place whose key is beyond a border; if there is none, the place after the last record, as the service says. */
async function findBorder(
  reading: Reading,
  group: TieGroup,
  { isBeyond, guess }: { isBeyond: (key: number) => boolean; guess: number | undefined },
): Promise<Decided | { kind: 'border'; place: number; low: number }> {
  const search = new BorderSearch(reading.fetcher.sizes, guess)
  while (search.tries < timesSearched) {
    const found = await lookUpWindow(reading, group, choosePageBelow(search.next(), reading.fetcher.sizes))
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
  return broken(reading, group, `could not be measured: ${timesSearched} requests did not find where it ends`)
}

/** The end of the work on a group that cannot be proven; where a page was refused, that is why. */
function broken({ fetcher, key }: Reading, { at }: TieGroup, why: string): Decided {
  const hint = key === 'updated' ? '; a full export does not need this order' : ''
  const reason = `the group of records at ${toTimestamp(at)} ${why}`
  return { kind: 'broken', reason: `${fetcher.unserved ?? reason}${hint}` }
}

/** `swept`: the whole group was taken without a single window that holds all of it. */
export type GroupEnd = Decided | { kind: 'swept' }

const maxSweeps = 10
/** The ids of a group are kept while it is swept: about 5 MB at this many. */
const maxRecords = 50_000

/**
 * Takes a tie group that the window at the frontier does not hold completely.
 *
 * The order of ties may differ in each response, so two windows that hold one half each prove nothing. Its places are
 * swept, unless a window on the way turns out to hold the whole group and a record on either side.
 */
export async function* takeGroup(reading: Reading, window: Window): AsyncGenerator<ReadStep, GroupEnd> {
  const { at } = reading.frontier
  const group: TieGroup = { at, descending: window.fromTop && window.descending && newestOf(window) === at }
  const guess = group.descending ? { first: 0, end: window.keys.length } : toGuess(reading, window)
  return yield* sweep(reading, { group, guess })
}

function toGuess({ frontier, state }: Reading, window: Window): Partial<TieExtent> {
  const end = window.descending ? state.place : placeAbove(window, frontier.at)
  return end === undefined ? {} : { end }
}

/**
 * Reads all places of the group repeatedly, until two successive sweeps show the same records, as many as there are
 * places before, between and after them. A record can escape one sweep by sliding across a border between two pages, but
 * then that sweep shows one record less than there are places, or another one that the next sweep must show as well.
 * Each sweep uses another page size, so that two replicas that differ by a record cannot hide one at the same border
 * twice.
 */
async function* sweep(
  reading: Reading,
  { group, guess }: { group: TieGroup; guess: Partial<TieExtent> },
): AsyncGenerator<ReadStep, GroupEnd> {
  const { made } = reading.state.requests
  let before = await measure(reading, group, guess)
  let agreed: Set<string> | undefined
  let shown = 0
  for (let sweeps = 1; sweeps <= maxSweeps; sweeps++) {
    if (before.kind !== 'extent') return before
    if (numberOf(before) > maxRecords)
      return broken(
        reading,
        group,
        `has ${numberOf(before)} records: no more than ${maxRecords} can be compared`,
      )
    const ids = new Set<string>()
    const { least, most } = reading.fetcher.sizes
    const size = most - ((sweeps * 7) % (most - least + 1))
    let isLost = false
    // Newest first, the list may end with the group, as only the service says: the page after it must not show more.
    const last = Math.ceil(before.end / size) + (group.descending ? 1 : 0)
    for (let page = Math.floor(before.first / size) + 1; page <= last; page++) {
      const found = await lookUpWindow(reading, group, { page, pageSize: size })
      if (isDecided(found)) return found
      isLost ||= found.kind === 'lost'
      yield await reading.step(
        found.kind === 'window' ? takeTied(reading, { window: found.window, group, ids }) : undefined,
      )
    }
    const after: Decided | TieExtent = await measure(reading, group, before)
    if (after.kind !== 'extent') return after
    const complete = !isLost && ids.size === numberOf(before) && ids.size === numberOf(after)
    if (complete && agreed !== undefined && isSame(ids, agreed)) {
      reading.frontier.closed = true
      reading.state.ties.push({
        at: toTimestamp(group.at),
        records: ids.size,
        sweeps,
        requests: reading.state.requests.made - made,
      })
      // The group is complete, so a record of it now links.
      reading.state.place = group.descending
        ? Math.max(0, (reading.fetcher.count ?? 0) - after.end)
        : after.first
      return { kind: 'swept' }
    }
    agreed = complete ? ids : undefined
    shown = ids.size
    before = after
  }
  const last =
    before.kind === 'extent' ? `, the last showed ${shown} records in ${numberOf(before)} places` : ''
  return broken(reading, group, `kept changing: ${maxSweeps} sweeps did not agree${last}`)
}

/** Takes the new records of the group in a window, and collects the ids of all of the group that it shows. */
function takeTied(
  reading: Reading,
  { window, group, ids }: { window: Window; group: TieGroup; ids: Set<string> },
) {
  const key = window.descending ? -group.at : group.at
  for (const [at, record] of window.records.entries())
    if (window.keys[at] === key) ids.add(identityOf(record))
  return reading.takeFrom(window, group.at)
}

function isDecided(found: WindowLookup): found is Decided {
  return (
    found.kind === 'enclosed' || found.kind === 'moved' || found.kind === 'capped' || found.kind === 'broken'
  )
}

function numberOf({ first, end }: TieExtent): number {
  return end - first
}

function isSame(some: Set<string>, others: Set<string>): boolean {
  return some.size === others.size && some.isSubsetOf(others)
}
