import { NotFound, Refused } from '../../../core/billing/errors.ts'
import type { ListPage } from '../../../core/billing/reply.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import type { PageRequest } from '../../../core/reading/range-state.ts'
import { start } from './drifting-list.ts'
import { failure, listById, listOf, serving } from './lists.ts'
import type { readThrough } from './read-through.ts'

/** A page of records that are on no other page, of a list that counts one more than its pages have. */
const more = ({ page }: PageRequest): ListPage => {
  const records = Array.from({ length: 10 }, (_, at) => ({
    id: `${page}-${at}`,
    created: toTimestamp(start),
  }))
  return { records, count: page * 10 + 1, next: null, servedAt: undefined }
}

export const served = Date.parse('2026-11-21T12:00:00Z')
export const options = { now: () => served, serviceTime: served }

/** One service, or one question, for each reason for which a read can be unproven. */
export const unproven: Record<string, () => Parameters<typeof readThrough>[0]> = {
  'capped at 3 pages': () => ({ fetchPage: listOf().fetchPage, maxRequests: 3 }),
  'responses were older than the read': () => ({
    fetchPage: serving(listOf(), (page) => ({ ...page(), servedAt: served - 600_000 })),
  }),
  'ordering=-created is not honoured': () => {
    const list = listById()
    return { fetchPage: (request) => list.fetchPage({ ...request, ordering: 'created' }) }
  },
  'ordering=-created is not honoured: page 1 of 100': () => {
    // Oldest first, whatever is asked for: that does not show the newest record.
    const list = listOf()
    return { fetchPage: (request) => list.fetchPage({ ...request, ordering: 'created' }) }
  },
  'the list is not ordered': () => ({
    fetchPage: serving(listOf(), (page, { ordering }) => {
      if (ordering !== undefined)
        throw new Refused({ ...failure, status: 400, messages: ['no such ordering'] })
      return page()
    }),
  }),
  'the service ignores the filter name': () => {
    const list = listOf()
    const name = (at: number) => ({ name: `n${at % 5}` })
    list.versions = [list.now.map((item, at) => ({ ...item, record: { ...item.record, ...name(at) } }))]
    return { fetchPage: list.fetchPage, filters: { name: 'n3' } }
  },
  'records seem to be removed': () => ({
    fetchPage: serving(listOf(), (page) => ({
      ...page(),
      records: page().records.filter((_, at) => at !== 5),
    })),
  }),
  'the service does not follow the page size': () => {
    const list = listOf({ size: 300 })
    return { fetchPage: (request) => list.fetchPage({ ...request, pageSize: 40 }) }
  },
  'the service returns at most 10 records a page': () => ({ fetchPage: listOf({ cap: 10 }).fetchPage }),
  'the list continued past page 120': () => {
    const list = listOf({ cap: 10 })
    return { fetchPage: serving(list, (page, request) => (request.page > 70 ? more(request) : page())) }
  },
  'the service repeats pages: the 20 before page 91 had come before': () => {
    const list = listOf({ cap: 10 })
    const again = (request: PageRequest) => list.serve({ ...request, page: 1 })
    return { fetchPage: serving(list, (page, request) => (request.page > 70 ? again(request) : page())) }
  },
  'have no readable created': () => {
    const list = listOf()
    list.versions = [list.now.with(37, { ...list.now[37]!, record: { id: 'odd', created: 'yesterday' } })]
    return { fetchPage: list.fetchPage }
  },
  'although the newest page could be read\npage 5 could not be read': () => {
    const list = listOf()
    const poison = list.now[450]?.record
    return {
      fetchPage: serving(list, (page) => {
        // Of a gateway: the service has this page.
        if (page().records.includes(poison)) throw new NotFound({ ...failure, status: 404, byService: false })
        return page()
      }),
    }
  },
  'windows held both a newer and an older record': () => {
    // Each page but the very first answer and the oldest records holds the newest 90, the newest of them several times.
    const list = listOf()
    const newest = list.now.slice(-90)
    let answers = 0
    return {
      fetchPage: serving(list, (page, { page: number, pageSize, ordering }) => {
        const descending = ordering === '-created'
        if (descending ? answers++ === 0 : number === 1) return page()
        const records = Array.from({ length: pageSize }, (_, at) => newest[Math.min(at, 89)]!.record)
        return {
          ...page(),
          records: descending ? records.toReversed() : records,
          next: `?page=${number + 1}`,
        }
      }),
    }
  },
  'the newest records kept changing: 10 reads': () => {
    const list = listOf()
    // Two servers of which one has only the newest records, and the other only the oldest.
    const [old, young] = [list.now.slice(0, 350), list.now.slice(350)]
    return {
      fetchPage: (request) => {
        list.versions = [request.ordering === '-created' ? young : old]
        return Promise.resolve({ ...list.serve(request), count: 350 })
      },
    }
  },
  'kept changing: 10 sweeps': () => {
    const list = listOf({ groups: [{ records: 300, after: 0.5 }], shuffledTies: true })
    return { fetchPage: list.fetchPage }
  },
}
