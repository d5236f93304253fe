/** Lists that stand still, and services that show them as they are told. */
import type { ListPage } from '../../../core/billing/reply.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import type { FetchPage, PageRequest } from '../../../core/reading/range-state.ts'
import { DriftingList, quiet, start, type ListOptions } from './drifting-list.ts'

export const calm: ListOptions = {
  seed: 20_261_121,
  size: 700,
  ties: 0,
  drift: quiet,
  shuffledTies: false,
  countLag: 0,
  replicaLag: 0,
  staleShare: 0,
  gatewayFaults: 0,
  shortWindows: 0,
}

export const listOf = (options: Partial<ListOptions> = {}) => new DriftingList({ ...calm, ...options })

/** A list whose own order is that of the ids. */
export function listById(options: Partial<ListOptions> = {}): DriftingList {
  const list = listOf(options)
  list.versions = [list.now.toSorted((one, other) => one.id.localeCompare(other.id))]
  return list
}

/** A service that answers as told. */
export const serving =
  (list: DriftingList, answer: (page: () => ListPage, request: PageRequest) => ListPage): FetchPage =>
  (request) =>
    Promise.resolve().then(() => answer(() => list.serve(request), request))

/** What is said of a request that failed. */
export const failure = { method: 'GET', path: '/customers/', byService: true }

/** A list without ties whose records are made when they are asked for. */
export function standing(size: number): FetchPage {
  const record = (place: number) => ({ id: `r${place}`, created: toTimestamp(start + place * 1_000_003) })
  return ({ ordering, page, pageSize }) => {
    const places = Array.from(
      { length: Math.max(0, Math.min(pageSize, size - (page - 1) * pageSize)) },
      (_, at) => {
        const place = (page - 1) * pageSize + at
        return ordering === '-created' ? size - 1 - place : place
      },
    )
    const next = page * pageSize < size ? `/list/?page=${page + 1}` : null
    return Promise.resolve({ records: places.map(record), count: size, next, servedAt: undefined })
  }
}
