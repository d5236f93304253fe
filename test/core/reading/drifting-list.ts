/**
 * A list that moves while it is read, in memory and without time: each request is answered after a few turns of
 * the event queue, and the list drifts before each answer. Everything random comes from one seed.
 */
import type { ListPage } from '../../../core/billing/reply.ts'
import { NotFound, ServiceFault } from '../../../core/billing/errors.ts'
import { toInstant, toTimestamp } from '../../../core/billing/instants.ts'
import type { PageRequest } from '../../../core/reading/range-state.ts'

export interface Item {
  id: string
  /** Microseconds. */
  at: number
  updated: number
  record: Record<string, unknown>
}

export interface Drift {
  /** Chances per request; above 1, that many. */
  deletes: number
  inserts: number
  /** Records that appear with a `created` a little older than the newest. */
  lateCommits: number
  /** Deleted records that come back where they were. */
  restores: number
  /** Records that appear anywhere, at a time that others have. */
  tiedInserts: number
  updates: number
  /** Records whose status changes: one, or at once the newest and the oldest of a status, which may be deleted, too. */
  moves?: number
  floods?: number
}

export const quiet: Drift = {
  deletes: 0,
  inserts: 0,
  lateCommits: 0,
  restores: 0,
  tiedInserts: 0,
  updates: 0,
}

export interface ListOptions {
  seed: number
  size: number
  /** The share of the records that have the time of another one. */
  ties: number
  /** Groups of one time: how many records, and after what share of the list; 1: nothing is newer. */
  groups?: readonly { records: number; after: number }[]
  drift: Drift
  /** Equal times come in another order in each response. */
  shuffledTies: boolean
  /** How many changes a count, and a `next` made from it, may be older than the rows: they are cut at it. */
  countLag: number
  /** How many changes a response may be old, and how often one is. */
  replicaLag: number
  staleShare: number
  /** Chances of a request. */
  gatewayFaults: number
  shortWindows: number
  /** The largest page the service gives. */
  cap?: number
  /** What records have besides an id and times, by the number of the record; it may replace these. */
  dress?: (record: Record<string, unknown>, serial: number) => Record<string, unknown>
  statuses?: readonly string[]
  /** How many changes the list had before all that is there throughout. */
  past?: number
}

export type Random = () => number

/** mulberry32 */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}

export const start = toInstant('2026-01-01T00:00:00Z') ?? NaN

/** Far more than any of these lists may cost, with all the crashes that are tried. */
const mostRequests = 50_000

export class DriftingList {
  readonly options: ListOptions
  readonly random: Random
  /** Ascending by `at`; each change makes a new one, so that old ones can still be served. */
  versions: (readonly Item[])[]
  /** As it was before all that is there throughout. */
  readonly past: readonly Item[]
  /** The time by which records are created and updated during the read; undefined in a list without time. */
  clock: number | undefined
  /** The ids of the records that were updated or moved, and the statuses that each of them had. */
  readonly changed = new Map<string, Set<unknown>>()
  requests = 0
  #removed: Item[] = []
  #serial = 0
  #throughout = new Set<string>()

  constructor(options: ListOptions) {
    this.options = options
    this.random = createRandom(options.seed)
    this.versions = [this.#fill()]
    this.past = this.now
    for (let change = 0; change < (options.past ?? 0); change++) this.#change()
    this.changed.clear()
    // No server stands still for longer; what a cache has is `past`.
    this.versions = [this.now]
    this.#throughout = new Set(this.now.map(({ id }) => id))
    // A stale copy may be as old as this: what changed then was not there throughout either.
    for (let change = 0; change < Math.max(options.replicaLag, options.countLag); change++) this.#change()
  }

  get now(): readonly Item[] {
    return this.versions.at(-1) ?? []
  }

  /** The ids that every answer, however stale, could show. */
  get throughout(): ReadonlySet<string> {
    return this.#throughout
  }

  readonly fetchPage = async (request: Omit<PageRequest, 'beforeSend'>): Promise<ListPage> => {
    if (++this.requests > mostRequests)
      throw new Error(`the read does not end: ${JSON.stringify(this.options)}`)
    for (let turn = Math.floor(this.random() * 8); turn >= 0; turn--) await Promise.resolve()
    this.drift()
    if (this.random() < this.options.gatewayFaults) throw gatewayFault(this.random())
    return this.serve(request)
  }

  serve({ ordering = 'created', page, pageSize, filters }: Omit<PageRequest, 'beforeSend'>): ListPage {
    const { countLag, replicaLag, staleShare, shuffledTies, shortWindows } = this.options
    const size = Math.min(pageSize, this.options.cap ?? 100)
    const back = (lag: number) => Math.floor(this.random() * (lag + 1))
    const stale = this.random() < staleShare ? back(replicaLag) : 0
    const matching = (items: readonly Item[]) => (filters['never'] === undefined ? items : [])
    const version = matching(this.#version(stale))
    const count = matching(
      this.#version(stale + (countLag > 0 && this.random() < 0.5 ? back(countLag) : 0)),
    ).length
    const descending = ordering.startsWith('-')
    const low = (page - 1) * size
    const top = Math.min(low + size, count)
    if (page > 1 && low >= count) throw notFound()
    const rows = window(version, { low, top, descending, shuffle: shuffledTies ? this.random : undefined })
    if (rows.length > 2 && this.random() < shortWindows)
      rows.splice(Math.floor(this.random() * rows.length), 1)
    return {
      records: rows.map(({ record }) => record),
      count,
      next: low + size < count ? `http://service/list/?page=${page + 1}&page_size=${size}` : null,
      servedAt: undefined,
    }
  }

  #version(back: number): readonly Item[] {
    return this.versions[Math.max(0, this.versions.length - 1 - back)] ?? []
  }

  #fill(): Item[] {
    const { size, groups = [] } = this.options
    // With this chance of having the time of the one before, a record stands alone in (1 - chance)² of all cases.
    const ties = 1 - Math.sqrt(1 - this.options.ties)
    const items: Item[] = []
    let at = start
    const starts = new Map(groups.map(({ records, after }) => [Math.floor(after * size), records]))
    for (let place = 0; place < size; place++) {
      const group = starts.get(place) ?? 0
      at += 1 + Math.floor(this.random() * 1_000_000)
      for (let member = 0; member < group; member++) items.push(this.#item(at))
      if (group > 0) at += 1
      items.push(this.#item(at))
      while (this.random() < ties && place < size - 1) {
        place++
        items.push(this.#item(at))
      }
    }
    for (let member = starts.get(size) ?? 0; member > 0; member--) items.push(this.#item(at + 1))
    return items
  }

  #item(at: number): Item {
    const serial = this.#serial++
    const item = toItem(`r${serial}`, at, at)
    return { ...item, record: this.options.dress?.(item.record, serial) ?? item.record }
  }

  drift(): void {
    for (const kind of kinds) {
      let chance = this.options.drift[kind] ?? 0
      for (; chance > 0; chance--) if (this.random() < chance) this.#apply(kind)
    }
    const most = Math.max(this.options.countLag, this.options.replicaLag) * 2 + 2
    if (this.versions.length > 4 * most) this.versions.splice(0, this.versions.length - most)
  }

  /** One change of any kind that the list knows, so that lags count changes. */
  #change(): void {
    const likely = kinds.filter((kind) => (this.options.drift[kind] ?? 0) > 0)
    const kind = likely[Math.floor(this.random() * likely.length)]
    if (kind !== undefined) this.#apply(kind)
  }

  #apply(kind: keyof Drift): void {
    const items = this.now
    const any = Math.floor(this.random() * items.length)
    const newest = items.at(-1)?.at ?? start
    if (kind === 'deletes') {
      const item = items[any]
      if (item === undefined) return
      this.#removed.push(item)
      this.#throughout.delete(item.id)
      this.versions.push(items.toSpliced(any, 1))
    } else if (kind === 'inserts')
      this.#insert(this.#item(this.clock ?? newest + 1 + Math.floor(this.random() * 1000)))
    else if (kind === 'lateCommits') {
      const near = items[Math.max(0, items.length - 1 - Math.floor(this.random() * 30))]
      this.#insert(this.#item((near?.at ?? start) + (this.random() < 0.5 ? 0 : 1)))
    } else if (kind === 'restores') {
      const [item] = this.#removed.splice(Math.floor(this.random() * this.#removed.length), 1)
      if (item !== undefined) this.#insert(item)
    } else if (kind === 'tiedInserts') {
      const item = items[any]
      if (item !== undefined) this.#insert(this.#item(item.at))
    } else if (kind === 'floods') this.#flood()
    else {
      const item = items[any]
      if (item === undefined) return
      this.versions.push(
        items.with(any, this.#altered(item, kind === 'moves' ? this.#anyStatus() : undefined)),
      )
    }
  }

  #anyStatus(): string | undefined {
    const { statuses = [] } = this.options
    return statuses[Math.floor(this.random() * statuses.length)]
  }

  /** The item as it is updated, maybe with another status. */
  #altered(item: Item, status = item.record['status']): Item {
    const statuses = this.changed.get(item.id) ?? new Set([item.record['status']])
    this.changed.set(item.id, statuses.add(status))
    const updated = Math.max(this.clock ?? 0, item.updated + 1)
    const record = { ...item.record, updated: toTimestamp(updated), ...(status !== undefined && { status }) }
    return { ...item, updated, record }
  }

  /** As a service does that archives, or cancels, all that is old or new. */
  #flood(): void {
    const [from, to] = [this.#anyStatus(), this.random() < 0.3 ? undefined : this.#anyStatus()]
    const most = [5, 30, 110, Infinity][Math.floor(this.random() * 4)]!
    const found = this.now.filter(({ record }) => record['status'] === from)
    const moved = new Set([...found.slice(0, most), ...found.slice(-most)])
    for (const { id } of to === undefined ? moved : []) this.#throughout.delete(id)
    this.versions.push(
      this.now.flatMap((item) => {
        if (!moved.has(item)) return [item]
        return to === undefined ? [] : [this.#altered(item, to)]
      }),
    )
  }

  #insert(item: Item): void {
    const items = this.now
    let [low, high] = [0, items.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((items[middle]?.at ?? Infinity) <= item.at) low = middle + 1
      else high = middle
    }
    this.versions.push(items.toSpliced(low, 0, item))
  }
}

const kinds = [
  'deletes',
  'inserts',
  'lateCommits',
  'restores',
  'tiedInserts',
  'updates',
  'moves',
  'floods',
] as const

/** The slice of a list in the order asked for; equal times in a random order where there is one. */
export function window(
  items: readonly Item[],
  options: { low: number; top: number; descending: boolean; shuffle: Random | undefined },
): Item[] {
  const { descending, shuffle } = options
  const low = descending ? items.length - Math.min(options.top, items.length) : options.low
  const top = descending
    ? items.length - Math.min(options.low, items.length)
    : Math.min(options.top, items.length)
  if (low >= top) return []
  if (shuffle === undefined) {
    const rows = items.slice(low, top)
    return descending ? rows.toReversed() : rows
  }
  // The groups at both ends reach out of the slice: they are shuffled whole before it is cut.
  let [from, to] = [low, top]
  while (from > 0 && items[from - 1]?.at === items[low]?.at) from--
  while (to < items.length && items[to]?.at === items[top - 1]?.at) to++
  const rows = items.slice(from, to)
  shuffleTies(rows, shuffle)
  const cut = rows.slice(low - from, top - from)
  return descending ? cut.toReversed() : cut
}

function shuffleTies(rows: Item[], random: Random): void {
  for (let first = 0; first < rows.length;) {
    let last = first
    while (rows[last + 1]?.at === rows[first]?.at) last++
    for (let at = last; at > first; at--) {
      const other = first + Math.floor(random() * (at - first + 1))
      const [one, two] = [rows[at], rows[other]]
      if (one !== undefined && two !== undefined) [rows[at], rows[other]] = [two, one]
    }
    first = last + 1
  }
}

function toItem(id: string, at: number, updated: number): Item {
  const created = toTimestamp(at)
  return {
    id,
    at,
    updated,
    record: { id, created, updated: updated === at ? created : toTimestamp(updated) },
  }
}

export function notFound(): NotFound {
  return new NotFound({
    method: 'GET',
    path: '/list/',
    status: 404,
    messages: ['Invalid page.'],
    byService: true,
  })
}

export function gatewayFault(random: number): Error {
  const failure = { method: 'GET', path: '/list/', status: 404 }
  return random < 0.5
    ? new NotFound({ ...failure, byService: false })
    : new ServiceFault({ ...failure, status: 502 })
}
