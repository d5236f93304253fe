import { type Answer, detail, json } from './answer.ts'
import type { Chance } from './data/random.ts'
import { lastParam, toTerms } from './filters.ts'
import type { ListName } from './options.ts'
import type { Call } from './service.ts'
import type { OrderField, RecordView, StoredRecord, Term } from './store.ts'

/** A page of a list (interface section 4.1). */
export function listPage(name: ListName, call: Call): Answer {
  const { query, struck, world, service, mode } = call
  const ignored = struck.all('ignoreFilters')
  const ignores = (filter: string) => ignored.some(({ filters }) => filters?.includes(filter) ?? true)
  const { terms, errors } = toTerms({ name, world, query, ignores })
  if (errors !== undefined) return json(400, errors)
  terms.push(...hidingTerms(name, call))

  const lagging = struck.find('replica')
  const view = lagging === undefined ? world[name].view : service.replicas.view(mode, name, lagging.lag)
  const stale = struck.find('staleCount')
  const counted = stale === undefined ? view : service.replicas.view(mode, name, stale.lag)
  const { field, descending } = orderingOf(name, call)
  const count = counted.matching(terms, field).length
  const size = pageSizeOf(query, struck.find('pageSize'))
  const pages = Math.max(1, Math.ceil(count / size))
  const page = pageOf(query, pages)
  if (page === undefined) return detail(404, 'Invalid page.')

  const rows = rowsOf({ call, view, terms, field, descending, page, size, count })
  const links = linksOf({ call, page, pages })
  return { status: 200, body: toEnvelope({ count, links, records: toJson(name, call, rows) }) }
}

function orderingOf(name: ListName, call: Call): { field: OrderField; descending: boolean } {
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

function rowsOf(options: {
  call: Call
  view: RecordView
  terms: readonly Term[]
  field: OrderField
  descending: boolean
  page: number
  size: number
  count: number
}): StoredRecord[] {
  const { call, view, terms, field, descending, size, count } = options
  const page = call.struck.find('repeatPage') === undefined ? options.page : Math.max(1, options.page - 1)
  const chance = call.service.settings.tieOrder === 'shuffled' ? call.service.chance : undefined
  const from = (page - 1) * size
  // Django cuts at the count, which came from a separate query.
  const to = Math.min(page * size, count)
  const rows = cutWindow({ records: view.matching(terms, field), field, descending, from, to, chance })
  const dropped = call.struck.find('shortWindow')?.drop ?? 0
  for (let drop = 0; drop < dropped && rows.length > 0; drop++)
    rows.splice(call.service.chance.below(rows.length), 1)
  return rows
}

function linksOf(options: { call: Call; page: number; pages: number }) {
  const { call, page, pages } = options
  const base = call.struck.find('foreignLinks')?.base ?? call.base
  const link = (to: number) =>
    JSON.stringify(pageLink({ base, path: call.path, query: call.query, page: to }))
  return { next: page < pages ? link(page + 1) : 'null', previous: page > 1 ? link(page - 1) : 'null' }
}

function toJson(name: ListName, call: Call, rows: readonly StoredRecord[]): Buffer[] {
  const collection = call.world[name]
  const records = rows.map((record) => collection.json(record))
  for (const { field, value, records: wrong } of call.struck.all('wrongType')) {
    for (let count = 0; count < (wrong ?? 1) && rows.length > 0; count++) {
      const place = call.service.chance.below(rows.length)
      records[place] = collection.jsonWith(rows[place] as StoredRecord, { [field]: value })
    }
  }
  return records
}

const COMMA = 44
const END = Buffer.from(']}')

/** Concatenates the records' cached JSON, so a page needs no serialization. */
function toEnvelope(options: {
  count: number
  links: { next: string; previous: string }
  records: readonly Buffer[]
}): Buffer {
  const { count, links, records } = options
  const head = `{"count":${count},"next":${links.next},"previous":${links.previous},"results":[`
  const headLength = Buffer.byteLength(head)
  let length = headLength + END.length + Math.max(0, records.length - 1)
  for (const record of records) length += record.length
  const page = Buffer.allocUnsafe(length)
  let place = page.write(head)
  for (const [number, record] of records.entries()) {
    if (number > 0) page[place++] = COMMA
    place += record.copy(page, place)
  }
  END.copy(page, place)
  return page
}

/**
 * The records at indexes `from` to `to` of an ascending list, read forward or backward. With `chance`,
 * records with equal keys change places at each call, as in a database without a complete ordering.
 */
export function cutWindow(options: {
  records: readonly StoredRecord[]
  field: OrderField
  descending: boolean
  from: number
  to: number
  chance: Chance | undefined
}): StoredRecord[] {
  const { records, field, descending, chance } = options
  const end = Math.min(options.to, records.length)
  const first = descending ? records.length - end : options.from
  const last = descending ? records.length - options.from : end
  if (first >= last) return []
  const window =
    chance === undefined ? records.slice(first, last) : shuffled({ records, field, first, last, chance })
  return descending ? window.toReversed() : window
}

function shuffled(options: {
  records: readonly StoredRecord[]
  field: OrderField
  first: number
  last: number
  chance: Chance
}): StoredRecord[] {
  const { records, field, first, last, chance } = options
  const key = (place: number) => records[place]?.[field]
  let from = first
  let to = last
  // Ties that span a border are shuffled as a whole, so records cross the border.
  while (from > 0 && key(from - 1) === key(first)) from--
  while (to < records.length && key(to) === key(last - 1)) to++
  const wide = records.slice(from, to)
  for (let start = 0; start < wide.length;) {
    let end = start + 1
    while (end < wide.length && wide[end]?.[field] === wide[start]?.[field]) end++
    if (end - start > 1) chance.shuffle(wide, start, end)
    start = end
  }
  return wide.slice(first - from, last - from)
}

const DEFAULT_SIZE = 20
const MOST = 100

/**
 * The page size as Django REST framework reads it: anything but a positive number means the default, too
 * large a size the maximum.
 */
export function pageSizeOf(
  query: URLSearchParams,
  limit: { cap: number; fixed?: boolean } | undefined,
): number {
  if (limit?.fixed === true) return limit.cap
  const asked = lastParam(query, 'page_size') ?? ''
  const size = /^\d+$/.test(asked) && Number(asked) > 0 ? Number(asked) : DEFAULT_SIZE
  return Math.min(size, MOST, limit?.cap ?? MOST)
}

/** The requested page; undefined if it does not exist. Page 1 of an empty list exists. */
export function pageOf(query: URLSearchParams, pages: number): number | undefined {
  const asked = lastParam(query, 'page') ?? '1'
  if (asked === 'last') return pages
  const page = /^\d+$/.test(asked) ? Number(asked) : 0
  return page >= 1 && page <= pages ? page : undefined
}

/** The absolute address of another page: sorted parameters, and no `page` for the first one. */
export function pageLink(options: {
  base: string
  path: string
  query: URLSearchParams
  page: number
}): string {
  const query = new URLSearchParams(options.query)
  query.delete('page')
  if (options.page > 1) query.set('page', String(options.page))
  query.sort()
  const params = query.toString()
  return `${options.base}${options.path}${params === '' ? '' : `?${params}`}`
}
