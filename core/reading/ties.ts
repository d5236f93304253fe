import { toTimestamp, type Instant } from '../billing/instants.ts'
import { type Answer, askWindow, ChainBroken, whyUnserved } from './fetch-window.ts'
import { BorderSearch, choosePageBelow, type Sizes } from './find-window.ts'
import type { ReadStep } from './range-state.ts'
import type { Reading } from './reading.ts'
import { identityOf } from './record.ts'
import { lowOf, newestOf, placeAbove, toLink, type PageChoice, type Window } from './window.ts'

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
  /** Only the service says that the list ends there. */
  isClaimed: boolean
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
 * between and after them, and the seams of a sweep that showed these are closed. Each sweep uses another page size, so that
 * the seams of one lie inside the pages of the next. A window on the way may turn out to hold the whole group and a record
 * on either side: then it links by itself.
 * @throws {ChainBroken} none of these could be established
 */
export async function* takeGroup(reading: Reading, window: Window): AsyncGenerator<ReadStep, GroupEnd> {
  const { state, frontier } = reading
  const { at: instant } = frontier
  const group = { instant, descending: window.fromTop && newestOf(window) === instant }
  const requestsBefore = state.counts.requests
  let before = await measure(reading, group, toGuess(reading, group, window))
  /** The last sweeps in a row that showed the same records, one for each place. */
  let alike: Sweep[] = []
  let shown = ''
  let sizeBefore = NaN
  for (let sweeps = 1; sweeps <= maxSweeps; sweeps++) {
    if (before.kind !== 'extent') return before
    const places = before.end - before.first
    if (places > maxRecords)
      throw broken(reading, group, `has ${places} records: no more than ${maxRecords} can be compared`)
    const sweep = new Sweep()
    const { ids } = sweep
    const { least, most } = reading.sizes
    const pageSize = most - ((sweeps * 7) % (most - least + 1))
    for (const choice of choosePages(before, { group, pageSize, sizeBefore, sizes: reading.sizes })) {
      const near = await askNear(reading, group, choice)
      if (near.kind === 'window') {
        const row = toRow(group, near.window)
        for (const earlier of alike) earlier.close(row)
        sweep.add(row)
        yield await reading.takeTied(near.window, instant)
      } else if (near.kind === 'lost' || near.kind === 'beyond') yield await reading.step()
      else return near
    }
    sweep.add([behind])
    const after = await measure(reading, group, before)
    if (after.kind !== 'extent') return after
    const isComplete = ids.size === places && ids.size === after.end - after.first
    const agreed = alike.at(-1)?.ids
    const isAlike = isComplete && agreed?.size === ids.size && ids.isSubsetOf(agreed)
    const isAgreed = isAlike && alike.some(({ isClosed }) => isClosed)
    const isClaimed = before.isClaimed || after.isClaimed
    const start = isAgreed && isClaimed ? await askStart(reading, instant, ids) : undefined
    if (isAgreed && (!isClaimed || start !== undefined)) {
      const requests = state.counts.requests - requestsBefore
      const at = toTimestamp(instant)
      state.ties.push({ at, records: ids.size, sweeps, requests })
      reading.certify({
        swept: at,
        places: [agreed.size, places, after.end - after.first],
        shown: [agreed, ids],
        gone: frontier.ids.difference(ids),
      })
      // The group is complete, so a record of it now links.
      frontier.closed = true
      state.place = group.descending ? Math.max(0, (reading.count ?? 0) - after.end) : after.first
      return start === undefined ? { kind: 'swept' } : { kind: 'enclosed', window: start }
    }
    alike = isAlike ? [...alike, sweep] : isComplete ? [sweep] : []
    shown = `, the last showed ${ids.size} records in ${after.end - after.first} places`
    before = after
    sizeBefore = pageSize
  }
  throw broken(reading, group, `kept changing: ${maxSweeps} sweeps did not agree${shown}`)
}

function toGuess({ state }: Reading, { instant, descending }: TieGroup, window: Window): Partial<Extent> {
  if (descending) return { first: 0, end: window.keys.length }
  const end = window.descending ? state.place : placeAbove(window, instant)
  return end === undefined ? {} : { end }
}

/** The pages of a sweep, with a window across each place where a page of the sweep before began, too. */
function choosePages(
  { first, end }: Extent,
  of: { group: TieGroup; pageSize: number; sizeBefore: number; sizes: Sizes },
): PageChoice[] {
  const { group, pageSize, sizeBefore, sizes } = of
  const begin = Math.floor(first / pageSize)
  // Newest first, the list may end with the group, as only the service says: the page after it must not show more.
  const pages = Math.ceil(end / pageSize) + (group.descending ? 1 : 0) - begin
  return Array.from({ length: pages }, (_, at) => ({ page: begin + at + 1, pageSize })).flatMap((choice) => {
    const low = lowOf(choice)
    return low > 0 && low % sizeBefore === 0 ? [choosePageBelow(low, sizes), choice] : [choice]
  })
}

/** What stands before and behind the records of a group. */
const ahead = Symbol('ahead')
const behind = Symbol('behind')
/** The records of a group in a window, in its order, with what it shows on either side of them. */
type Row = readonly (string | symbol)[]

function toRow({ instant, descending }: TieGroup, window: Window): Row {
  const key = descending ? -instant : instant
  const { keys, records, first, last, page, atEnd } = window
  return [
    ...(page === 1 || first < key ? [ahead] : []),
    ...records.filter((_, index) => keys[index] === key).map(identityOf),
    ...(last > key || (descending && atEnd) ? [behind] : []),
  ]
}

/**
 * What one sweep showed. Between two of its pages lies a seam: the last record of one and the first of the next. The list
 * may have moved between the two, so that a record that stands there was on neither. A window that holds both records of a
 * seam closes it: it shows what stands between them.
 */
class Sweep {
  readonly ids = new Set<string>()
  readonly #seams = new Set<Row>()
  #end: string | symbol = ahead

  /** Adds the next page. */
  add(row: Row): void {
    const [start = this.#end] = row
    if (start !== this.#end && !row.includes(this.#end)) this.#seams.add([this.#end, start])
    this.#end = row.at(-1) ?? this.#end
    for (const one of row) if (typeof one === 'string') this.ids.add(one)
  }

  /** Closes the seams that a page of another sweep shows. */
  close(row: Row): void {
    const shown = new Set(row)
    for (const seam of this.#seams) if (seam.every((one) => shown.has(one))) this.#seams.delete(seam)
  }

  get isClosed(): boolean {
    return this.#seams.size === 0
  }
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
  if (first.kind !== 'border') return first
  return { kind: 'extent', first: first.place, end: end.place, isClaimed: end.isClaimed }
}

/**
 * The start of the list, if it shows nothing older than a group, and of the group only what its sweeps have shown: the end that
 * the service claims may be that of an old count.
 */
async function askStart(
  reading: Reading,
  instant: Instant,
  ids: ReadonlySet<string>,
): Promise<Window | undefined> {
  const answer = await askWindow(reading, { page: 1, pageSize: reading.sizes.most })
  if (answer.kind !== 'window') return undefined
  const { keys, records, pageSize } = answer.window
  const group = records.filter((_, at) => keys[at] === instant)
  const isShown =
    group.length === Math.min(ids.size, pageSize) && group.every((one) => ids.has(identityOf(one)))
  return isShown && keys[0] === instant ? answer.window : undefined
}

/** The first place whose key is beyond a border; if there is none, the place after the last record, as the service says. */
async function findBorder(
  reading: Reading,
  group: TieGroup,
  isBeyond: (key: number) => boolean,
  guess: number | undefined,
): Promise<GroupEnd | { kind: 'border'; place: number; low: number; isClaimed: boolean }> {
  const search = new BorderSearch(reading.sizes, guess)
  while (search.tries < timesSearched) {
    const near = await askNear(reading, group, choosePageBelow(search.next(), reading.sizes))
    if (near.kind === 'lost') search.noAnswer()
    else if (near.kind === 'beyond') search.sawOver(near.low)
    else if (near.kind !== 'window') return near
    else {
      const { low, keys, page, atEnd } = near.window
      const index = keys.findIndex(isBeyond)
      if (index > 0 || (index === 0 && page === 1))
        return { kind: 'border', place: low + index, low, isClaimed: false }
      if (index === 0) search.sawOver(low)
      // The end of the list is only the service's claim, so, oldest first, it cannot be the border of a group.
      else if (atEnd)
        return group.descending
          ? { kind: 'border', place: low + keys.length, low, isClaimed: true }
          : { kind: 'moved' }
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
