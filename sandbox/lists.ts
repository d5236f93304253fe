import { type Answer, detail, json } from './answer.ts'
import type { Chance } from './data/random.ts'
import { lastParam, toTerms } from './filters.ts'
import type { ListName } from './options.ts'
import type { Call } from './service.ts'
import type { OrderField, StoredRecord, Term } from './store.ts'

/** A page of a list (interface section 4.1). */
export function listPage(name: ListName, call: Call): Answer {
  const { query, struck, world, service, base, path } = call
  const collection = world[name]
  const { terms, errors } = toTerms({ name, world, query, ignored: struck.all('ignoreFilters') })
  if (errors !== undefined) return json(400, errors)
  terms.push(...hidingTerms(name, call))

  const order = orderOf(name, call)
  const matching = collection.matching(terms, order.field)
  const count = matching.length
  const size = pageSizeOf(query, struck.find('pageSize'))
  const pages = Math.max(1, Math.ceil(count / size))
  const page = pageOf(query, pages)
  if (page === undefined) return detail(404, 'Invalid page.')

  const shown = struck.find('repeatPage') === undefined ? page : Math.max(1, page - 1)
  const window = { ...order, from: (shown - 1) * size, to: shown * size }
  const chance = service.settings.tieOrder === 'shuffled' ? service.chance : undefined
  const rows = cutWindow(matching, window, chance)
  const dropped = struck.find('shortWindow')?.drop ?? 0
  for (let drop = 0; drop < dropped && rows.length > 0; drop++)
    rows.splice(service.chance.below(rows.length), 1)
  const records = rows.map((record) => collection.json(record))
  for (const { field, value, records: wrong = 1 } of struck.all('wrongType'))
    for (let changed = 0; changed < wrong && rows.length > 0; changed++) {
      const place = service.chance.below(rows.length)
      records[place] = collection.jsonWith(rows[place] as StoredRecord, { [field]: value })
    }

  const link = (to: number) =>
    to < 1 || to > pages ? 'null' : JSON.stringify(`${base}${path}${pageParams(query, to)}`)
  const head = `{"count":${count},"next":${link(page + 1)},"previous":${link(page - 1)},"results":[`
  // The records' JSON is cached, so a page needs no serialization.
  const separated = records.flatMap((record, place) => (place === 0 ? [record] : [comma, record]))
  return { status: 200, body: Buffer.concat([Buffer.from(head), ...separated, end]) }
}

const comma = Buffer.from(',')
const end = Buffer.from(']}')

function orderOf(name: ListName, call: Call): { field: OrderField; descending: boolean } {
  const { orderings, defaultOrdering } = call.service.settings.lists[name]
  const asked =
    call.struck.find('ignoreOrdering') === undefined ? (lastParam(call.query, 'ordering') ?? '') : ''
  const honoured = asked.split(',').find((ordering) => orderings.includes(ordering)) ?? defaultOrdering
  const field = honoured.replace(/^-/, '')
  if (field !== 'created' && field !== 'updated' && field !== 'id')
    throw new RangeError(`lists.${name}: no such ordering: ${honoured}; there are created, updated and id`)
  return { field, descending: honoured.startsWith('-') }
}

function hidingTerms(name: ListName, call: Call): Term[] {
  const hidden = call.struck.all('hide').flatMap(({ statuses }) => statuses)
  if (hidden.length === 0 || call.query.has('status')) return []
  const collection = call.world[name]
  const holds = (record: StoredRecord) => !hidden.includes(String(collection.fields(record).status))
  return [{ key: `hide ${hidden.join()}`, holds }]
}

/**
 * The records at indexes `from` to `to` of an ascending list, read forward or backward. With `chance`,
 * records with equal keys change places at each call, as in a database without a complete ordering.
 */
function cutWindow(
  records: readonly StoredRecord[],
  window: { field: OrderField; descending: boolean; from: number; to: number },
  chance: Chance | undefined,
): StoredRecord[] {
  const { field, descending } = window
  const end = Math.min(window.to, records.length)
  const first = descending ? records.length - end : window.from
  const last = descending ? records.length - window.from : end
  if (first >= last) return []
  const key = (place: number) => records[place]?.[field]
  let [from, to] = [first, last]
  if (chance !== undefined) {
    // Ties that span a border are shuffled as a whole, so records cross the border.
    while (from > 0 && key(from - 1) === key(first)) from--
    while (to < records.length && key(to) === key(last - 1)) to++
  }
  const wide = records.slice(from, to)
  let start = 0
  while (start < wide.length) {
    let next = start + 1
    while (next < wide.length && key(from + next) === key(from + start)) next++
    if (next - start > 1) chance?.shuffle(wide, start, next)
    start = next
  }
  const rows = wide.slice(first - from, last - from)
  return descending ? rows.toReversed() : rows
}

const DEFAULT_SIZE = 20
const MOST = 100

/**
 * The page size as Django REST framework reads it: anything but a positive number means the default, too
 * large a size the maximum.
 */
function pageSizeOf(query: URLSearchParams, limit: { cap: number; fixed?: boolean } | undefined): number {
  if (limit?.fixed === true) return limit.cap
  const asked = lastParam(query, 'page_size') ?? ''
  const size = /^\d+$/.test(asked) && Number(asked) > 0 ? Number(asked) : DEFAULT_SIZE
  return Math.min(size, MOST, limit?.cap ?? MOST)
}

/** The requested page; undefined if it does not exist. Page 1 of an empty list exists. */
function pageOf(query: URLSearchParams, pages: number): number | undefined {
  const asked = lastParam(query, 'page') ?? '1'
  if (asked === 'last') return pages
  const page = /^\d+$/.test(asked) ? Number(asked) : 0
  return page >= 1 && page <= pages ? page : undefined
}

/** The parameters of another page: sorted, and no `page` for the first one. */
function pageParams(query: URLSearchParams, page: number): string {
  const params = new URLSearchParams(query)
  params.delete('page')
  if (page > 1) params.set('page', String(page))
  params.sort()
  return params.size === 0 ? '' : `?${params.toString()}`
}
