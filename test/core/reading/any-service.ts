/**
 * A service that does what docs/guarantees.md and the interface allow, in any mix. Each of its ways is small, and is
 * chosen by a seed; the list under it moves as a `DriftingList` does.
 */
import { Refused } from '../../../core/billing/errors.ts'
import type { ListPage } from '../../../core/billing/reply.ts'
import { customers } from '../../../core/billing/resources/customers.ts'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import type { PageRequest, ReadOptions } from '../../../core/reading/range-state.ts'
import { type oddRecords, type ServiceOptions, statuses, type Ways } from './any-ways.ts'
import { createRandom, DriftingList, gatewayFault, type Item, notFound, window } from './drifting-list.ts'
import type { Taken } from './read-through.ts'

type Asked = Omit<PageRequest, 'beforeSend'>

const hour = 3_600_000

export class AnyService {
  readonly list: DriftingList
  readonly ways: Ways
  /** What is asked of it. */
  readonly read: Pick<ReadOptions, 'resource' | 'readLagMs' | 'now' | 'fetchPage'> & Partial<ReadOptions>
  readonly #startedAt: number
  readonly #counts = new Map<string, { count: number; until: number }>()
  readonly #random: () => number
  #requests = 0

  constructor({ list: options, ways }: ServiceOptions) {
    const { seed, drift } = options
    this.ways = ways
    this.#random = createRandom(seed ^ 0x2545f491)
    const { moves, floods, hasStatuses } = ways
    this.list = new DriftingList({
      ...options,
      drift: { ...drift, moves: hasStatuses ? moves : 0, floods: hasStatuses ? floods : 0 },
      dress: (record, serial) => dress(record, serial, { ...ways, seed }),
      statuses: statuses.slice(0, ways.statusesUsed),
      past: ways.caches > 0 ? 40 : 0,
    })
    const newest = this.list.now.at(-1)?.at ?? 0
    this.list.clock = newest + 1 + Math.floor(this.#random() * ways.lagMs * 2) * 1000
    this.#startedAt = this.#now()
    this.read = this.#toRead()
  }

  get requests(): number {
    return this.#requests
  }

  #now(): number {
    return Math.ceil((this.list.clock ?? 0) / 1000)
  }

  #toRead(): typeof this.read {
    const { ways, list } = this
    const { hasStatuses, asks, maxRequests, date, lagMs } = ways
    const random = this.#random
    const filters: Record<string, string> =
      asks === 'search'
        ? { [hasStatuses ? 'customer' : 'name']: 'n1' }
        : asks === 'status' && hasStatuses
          ? { status: 'paused' }
          : {}
    const since = list.now[Math.floor(random() * list.now.length)]?.at ?? 0
    return {
      resource: hasStatuses ? subscriptions : customers,
      fetchPage: this.fetchPage,
      filters,
      now: () => this.#now(),
      // Another worker may resume the read with another lag.
      get readLagMs() {
        return lagMs + Math.floor(random() * 3) * 10_000
      },
      ...(maxRequests !== undefined && { maxRequests }),
      ...(date === 'present' && { serviceTime: toDate(this.#startedAt) }),
      ...(asks === 'changes' && { updatedSince: Math.floor(since / 1000) }),
    }
  }

  readonly fetchPage = async (request: Asked): Promise<ListPage> => {
    const { list, ways } = this
    if (++this.#requests > 50_000) throw new Error(`the read does not end: ${JSON.stringify(list.options)}`)
    for (let turn = Math.floor(this.#random() * 8); turn >= 0; turn--) await Promise.resolve()
    list.clock = (list.clock ?? 0) + 1 + Math.floor(this.#random() * 300_000)
    list.drift()
    if (this.#random() < list.options.gatewayFaults) throw gatewayFault(this.#random())
    const { page, pageSize, ordering = 'created', filters } = request
    const { status } = filters
    const isOfOrder = ways.orders.length === 0 || ways.orders.includes(ordering)
    const isHeard = status === undefined || !ways.ignored.includes(status) || !isOfOrder
    if (status !== undefined && ways.refused.includes(status) && isOfOrder) throw refused()
    if (ordering.endsWith('updated') && ways.updated === 'refused') throw refused()
    const { cap, isFixed } = this.#cap()
    const size = isFixed === 1 ? cap : Math.min(pageSize, cap)
    const low = (page - 1) * size
    if (low >= ways.deepest) throw refused()

    const isCached = this.#random() < ways.caches
    const known = isCached ? list.past : this.#version()
    const all = known.filter((item) => this.#shows(item, { ...filters, status: undefined }))
    // The premise `status`: a list that shows nothing follows the filter.
    const shown = isHeard || all.length === 0 ? known.filter((item) => this.#shows(item, filters)) : all
    const items = ordering.endsWith('updated') && ways.updated === 'shown' ? byUpdated(shown) : shown
    const counted = this.#count(items, request)
    const top = Math.min(low + size, ways.isCut ? counted : items.length)
    if (page > 1 && low >= (ways.isCut ? counted : items.length) && !ways.isEmptyPastEnd) throw notFound()
    const shuffle = list.options.shuffledTies ? this.#random : undefined
    const rows = window(items, { low, top, descending: ordering.startsWith('-'), shuffle })
    // This breaks the premise `slice`; only a count shows it.
    if (ways.count === 'true' && rows.length > 2 && this.#random() < list.options.shortWindows)
      rows.splice(Math.floor(this.#random() * rows.length), 1)
    return {
      records: rows.map(({ record }) => record),
      count: ways.count === 'absent' && !isOneTime(items) ? undefined : counted,
      next: toNext(ways.next, { page, size, follows: low + size < counted }),
      ...this.#date(isCached),
    }
  }

  /** Whether a list with these filters shows an item. */
  #shows({ record }: Item, filters: Readonly<Record<string, string | undefined>>): boolean {
    const { hasStatuses, hidden } = this.ways
    if (filters['status'] === undefined && hasStatuses && hidden.includes(String(record['status'])))
      return false
    return Object.entries(filters).every(([name, value]) => value === undefined || record[name] === value)
  }

  #version(): readonly Item[] {
    const { versions, options } = this.list
    const back =
      this.#random() < options.staleShare ? Math.floor(this.#random() * (options.replicaLag + 1)) : 0
    return versions.at(-1 - back) ?? versions[0] ?? []
  }

  #cap(): { cap: number; isFixed: number } {
    let left = this.#requests
    for (const one of this.ways.caps) if ((left -= one.requests) <= 0) return one
    return { cap: 100, isFixed: 0 }
  }

  #count(items: readonly Item[], { filters, page, ordering }: Asked): number {
    const { length } = items
    const { count } = this.ways
    if (count === 'true' || count === 'absent') return length
    const of = JSON.stringify([filters, ...(count === 'oldOfPage' ? [page, ordering] : [])])
    let old = this.#counts.get(of)
    if (old === undefined || old.until < this.#requests) {
      const by = this.#random() < 0.5 ? 3 : length
      const until = this.#requests + Math.floor(this.#random() * 200)
      old = { count: Math.max(0, length - Math.floor((this.#random() * 1.2 - 0.2) * by)), until }
      this.#counts.set(of, old)
    }
    // The premise `count`.
    return isOneTime(items) || old.count === 0 ? length : old.count
  }

  #date(isCached: boolean): Pick<ListPage, 'servedAt' | 'ageMs'> {
    const { date } = this.ways
    const random = this.#random
    const hasDate = date === 'present' || (date === 'sometimes' && random() < 0.5)
    // Servers' clocks differ a little, and a cache may be young.
    const age = isCached
      ? this.#now() - this.#startedAt + 6_000 + Math.floor(random() * hour)
      : Math.floor(random() * 3) * 1_000
    const hasAge = (isCached && (date !== 'present' || random() < 0.5)) || random() < 0.1
    return {
      servedAt: hasDate ? toDate(this.#now() - age) : undefined,
      ...(hasAge && {
        ageMs: isCached ? Math.ceil(age / 1000) * 1000 : Math.min(age, this.#now() - this.#startedAt),
      }),
    }
  }

  /** The serials of the records that a proven read must have: the promise. */
  promised(completeThrough: string | null): unknown[] {
    const { list, ways, read } = this
    const through = Date.parse(completeThrough ?? '') * 1000
    const { updatedSince, filters = {} } = read
    const hidden = new Set<unknown>(ways.hasStatuses ? ways.hidden : [])
    return list.now
      .filter((item) => {
        if (!list.throughout.has(item.id)) return false
        const { status, created } = item.record
        const had = list.changed.get(item.id)
        if (
          updatedSince !== undefined &&
          (had !== undefined || item.updated < updatedSince * 1000 || item.updated > through)
        )
          return false
        if (Number.isNaN(Date.parse(String(created))) || (updatedSince === undefined && item.at > through))
          return false
        // A hidden record keeps its status.
        if (
          had !== undefined &&
          had.size > 1 &&
          (filters['status'] !== undefined || [...had].some((one) => hidden.has(one)))
        )
          return false
        const isAsked = Object.entries(filters).every(([name, value]) => item.record[name] === value)
        return (
          isAsked && (updatedSince === undefined || filters['status'] !== undefined || !hidden.has(status))
        )
      })
      .map(({ record }) => record['serial'])
  }

  /** What is wrong with a read, as sentences. */
  judge({ outcome, serials, rejected }: Pick<Taken, 'outcome' | 'serials' | 'rejected'>): string[] {
    const { verdict, reasons, records, completeThrough } = outcome
    const came = new Set([...serials, ...rejected])
    const twice = serials.length - new Set(serials).size
    const lost = verdict === 'proven' ? this.promised(completeThrough).filter((one) => !came.has(one)) : []
    return [
      // Where records share an id, only their contents tell them apart, and a read is not proven.
      ...(twice > 0 && (verdict === 'proven' || !this.ways.odd.includes('repeated'))
        ? [`${verdict}: ${twice} came twice`]
        : []),
      ...(records === serials.length ? [] : [`${verdict}: counts ${records} records of ${serials.length}`]),
      ...((verdict === 'unproven') === reasons.length > 0
        ? []
        : [`${verdict}, reasons: ${reasons.join(' ')}`]),
      ...(lost.length > 0 ? [`proven: lost ${lost.length}`] : []),
    ]
  }
}

function dress(
  record: Record<string, unknown>,
  serial: number,
  { seed, hasStatuses, statusesUsed, odd }: Ways & { seed: number },
): Record<string, unknown> {
  const random = createRandom(seed ^ Math.imul(serial + 1, 0x9e3779b1))
  const field = hasStatuses ? 'customer' : 'name'
  const status = statuses[Math.floor(random() * statusesUsed)]
  const usual = { ...record, serial, [field]: `n${serial % 3}`, ...(hasStatuses && { status }) }
  const kind = random() < 0.05 ? odd[Math.floor(random() * odd.length)] : undefined
  if (odd.includes('prototype') && serial < prototypes.length) return { ...usual, id: prototypes[serial] }
  return { ...usual, ...(kind !== undefined && kind !== 'prototype' && oddOf(kind, serial)) }
}

const prototypes = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'no id: {}']

function oddOf(
  kind: Exclude<(typeof oddRecords)[number], 'prototype'>,
  serial: number,
): Record<string, unknown> {
  const odd = {
    nameless: { id: [undefined, null, '', {}][serial % 4] },
    characters: { id: `;\\\n"\u0000${serial}\ud800` },
    number: { id: serial },
    repeated: { id: `r${serial - 1 - (serial % 40)}` },
    undated: { created: [undefined, '2026-02-30T00:00:00Z', 1][serial % 3] },
    unchanged: { updated: [undefined, null, 'never'][serial % 3] },
  }
  return odd[kind]
}

const isOneTime = (items: readonly Item[]) => items[0]?.at === items.at(-1)?.at
const byUpdated = (items: readonly Item[]) =>
  items.map((item) => ({ ...item, at: item.updated })).toSorted((one, other) => one.at - other.at)
/** Whole seconds, as the header has them. */
const toDate = (ms: number) => Math.floor(ms / 1000) * 1000
const refused = () =>
  new Refused({ method: 'GET', path: '/list/', status: 400, messages: ['Not this.'], byService: true })

function toNext(
  way: Ways['next'],
  { page, size, follows }: { page: number; size: number; follows: boolean },
): ListPage['next'] {
  if (way === 'absent') return undefined
  if (way === 'null' || !follows) return null
  if (way === 'odd') return `http://service/list/?cursor=${page}`
  return `${way === 'relative' ? '' : 'http://service'}/list/?page=${page + 1}&page_size=${size}`
}

/** Requests that were lost for good end a read with their error: that is not a verdict. */
export function whereLostForGood(error: Error): undefined {
  if (error.name !== 'ServiceFault' && error.name !== 'NotFound' && error.name !== 'Refused') throw error
}
