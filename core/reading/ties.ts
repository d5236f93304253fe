import { toTimestamp, type Instant } from '../billing/instants.ts'
import { type Answer, askWindow, ChainBroken, whyUnserved } from './fetch-window.ts'
import { BorderSearch, choosePageBelow } from './find-window.ts'
import type { ReadStep } from './range-state.ts'
import type { Reading } from './reading.ts'
import { identityOf } from './record.ts'
import { newestOf, placeAbove, toLink, type PageChoice, type Window } from './window.ts'

/** A tie group that extends past the end of a window, and the order in which its places are counted. */
interface TieGroup {
  instant: Instant
  /** Newest first: for a group without newer records, so its places certainly begin at 0. */
  descending: boolean
}

/** The places of a group: its first place, and the first place after it. */
interface Extent {
  kind: 'extent'
  first: number
  end: number
}

/**
 * How the work on a group ends. `swept`: the whole group was taken without a single window that holds all of it.
 * `enclosed`: one window holds all of it and links. `moved`: no record is newer than the group any more, so the chain must
 * restart at the top.
 */
type GroupEnd = { kind: 'swept' } | { kind: 'enclosed'; window: Window } | { kind: 'moved' }

/**
 * Steps double until they pass a border, then halve: on a list at rest, 30 requests find any border of a list of a
 * million records.
 */
const timesSearched = 40
const maxSweeps = 10
/** The ids of a group are kept while it is swept: about 5 MB at this many. */
const maxRecords = 50_000

/**
 * Takes a tie group that the window at the frontier does not hold completely (see window.ts, "Records of one time").
 *
 * Its places are read repeatedly, until two successive sweeps show the same records, as many as there are places before,
 * between and after them. Each sweep uses another page size, so that two replicas that differ by a record cannot hide one
 * at the same border twice. A window on the way may turn out to hold the whole group and a record on either side: then it
 * links by itself.
 * @throws {ChainBroken} none of these could be established
 */
export async function* takeGroup(reading: Reading, window: Window): AsyncGenerator<ReadStep, GroupEnd> {
  const { state, frontier } = reading
  const { at: instant } = frontier
  const group = { instant, descending: window.fromTop && newestOf(window) === instant }
  const requestsBefore = state.counts.requests
  let before = await measure(reading, group, toGuess(reading, group, window))
  let agreed: { ids: ReadonlySet<string>; places: number } | undefined
  let shown = ''
  for (let sweeps = 1; sweeps <= maxSweeps; sweeps++) {
    if (before.kind !== 'extent') return before
    const places = before.end - before.first
    if (places > maxRecords)
      throw broken(reading, group, `has ${places} records: no more than ${maxRecords} can be compared`)
    const ids = new Set<string>()
    const { least, most } = reading.sizes
    const pageSize = most - ((sweeps * 7) % (most - least + 1))
    let isLost = false
    // Newest first, the list may end with the group, as only the service says: the page after it must not show more.
    const last = Math.ceil(before.end / pageSize) + (group.descending ? 1 : 0)
    for (let page = Math.floor(before.first / pageSize) + 1; page <= last; page++) {
      const near = await askNear(reading, group, { page, pageSize })
      if (near.kind === 'window') yield await takeTied(reading, group, near.window, ids)
      else if (near.kind === 'lost' || near.kind === 'beyond') {
        isLost ||= near.kind === 'lost'
        yield await reading.step()
      } else return near
    }
    const after = await measure(reading, group, before)
    if (after.kind !== 'extent') return after
    const isComplete = !isLost && ids.size === places && ids.size === after.end - after.first
    if (isComplete && agreed?.ids.size === ids.size && ids.isSubsetOf(agreed.ids)) {
      const requests = state.counts.requests - requestsBefore
      const at = toTimestamp(instant)
      state.ties.push({ at, records: ids.size, sweeps, requests })
      reading.certify({
        swept: at,
        places: [agreed.places, places, after.end - after.first],
        shown: [agreed.ids, ids],
        gone: frontier.ids.difference(ids),
      })
      // The group is complete, so a record of it now links.
      frontier.closed = true
      state.place = group.descending ? Math.max(0, (reading.count ?? 0) - after.end) : after.first
      return { kind: 'swept' }
    }
    agreed = isComplete ? { ids, places } : undefined
    shown = `, the last showed ${ids.size} records in ${after.end - after.first} places`
    before = after
  }
  throw broken(reading, group, `kept changing: ${maxSweeps} sweeps did not agree${shown}`)
}

function toGuess({ state }: Reading, { instant, descending }: TieGroup, window: Window): Partial<Extent> {
  if (descending) return { first: 0, end: window.keys.length }
  const end = window.descending ? state.place : placeAbove(window, instant)
  return end === undefined ? {} : { end }
}

/** Takes the new records of the group in a window, and adds the ids of all of the group that it shows. */
function takeTied(
  reading: Reading,
  { instant }: TieGroup,
  window: Window,
  ids: Set<string>,
): Promise<ReadStep> {
  const key = window.descending ? -instant : instant
  for (const [index, record] of window.records.entries())
    if (window.keys[index] === key) ids.add(identityOf(record))
  return reading.takeTied(window, instant)
}

/** Requests a window near a group; `enclosed` if it contains the whole group. */
async function askNear(reading: Reading, group: TieGroup, choice: PageChoice): Promise<GroupEnd | Answer> {
  const answer = await askWindow(reading, choice, group)
  if (answer.kind === 'window' && toLink(answer.window, reading.frontier) === 'links')
    return { kind: 'enclosed', window: answer.window }
  return answer
}

/** Finds both borders of a group, one after the other. */
async function measure(
  reading: Reading,
  group: TieGroup,
  guess: Partial<Extent>,
): Promise<GroupEnd | Extent> {
  const key = group.descending ? -group.instant : group.instant
  const end = await findBorder(reading, group, (other) => other > key, guess.end)
  if (end.kind !== 'border') return end
  const guessed = guess.first ?? Math.max(0, end.low - 1)
  const first = await findBorder(reading, group, (other) => other >= key, guessed)
  return first.kind === 'border' ? { kind: 'extent', first: first.place, end: end.place } : first
}

/** The first place whose key is beyond a border; if there is none, the place after the last record, as the service says. */
async function findBorder(
  reading: Reading,
  group: TieGroup,
  isBeyond: (key: number) => boolean,
  guess: number | undefined,
): Promise<GroupEnd | { kind: 'border'; place: number; low: number }> {
  const search = new BorderSearch(reading.sizes, guess)
  while (search.tries < timesSearched) {
    const near = await askNear(reading, group, choosePageBelow(search.next(), reading.sizes))
    if (near.kind === 'lost') search.noAnswer()
    else if (near.kind === 'beyond') search.sawOver(near.low)
    else if (near.kind !== 'window') return near
    else {
      const { low, keys, page, atEnd } = near.window
      const index = keys.findIndex(isBeyond)
      if (index > 0 || (index === 0 && page === 1)) return { kind: 'border', place: low + index, low }
      if (index === 0) search.sawOver(low)
      // The end of the list is only the service's claim, so, oldest first, it cannot be the border of a group.
      else if (atEnd)
        return group.descending ? { kind: 'border', place: low + keys.length, low } : { kind: 'moved' }
      else search.sawUnder(low + keys.length - 1)
    }
  }
  throw broken(reading, group, `could not be measured: ${timesSearched} requests did not find where it ends`)
}

/** Why a group cannot be proven: where a page was refused, that is it. */
function broken(reading: Reading, { instant }: TieGroup, why: string): ChainBroken {
  const hint = reading.key === 'updated' ? '; a full export does not need this order' : ''
  const reason = whyUnserved(reading) ?? `the group of records at ${toTimestamp(instant)} ${why}`
  return new ChainBroken(`${reason}${hint}`)
}
