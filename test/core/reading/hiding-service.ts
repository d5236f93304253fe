import type { ListPage } from '../../../core/billing/reply.ts'
import { toTimestamp } from '../../../core/billing/instants.ts'
import type { FetchPage, PageRequest } from '../../../core/reading/range-state.ts'
import { start } from './drifting-list.ts'

export interface Row {
  id: string
  created: string
  updated: string
  status: string
}

const statuses = ['active', 'paused', 'cancelled', 'finalized']

export function rows(size: number): Row[] {
  return Array.from({ length: size }, (_, at) => {
    const created = toTimestamp(start + at * 1_000_003)
    return { id: `s${at}`, created, updated: created, status: statuses[at % statuses.length] ?? '' }
  })
}

interface HidingOptions {
  /** Told of each request before it is answered. */
  onRequest?: (asked: number) => void
  /** Orders that are not followed. */
  ignored?: readonly string[]
  isHidden?: (row: Row) => boolean
}

/** A service that shows some statuses (or some records of them) only where they are asked for. */
export function hiding(all: Row[], hidden: readonly string[], options: HidingOptions = {}) {
  const { onRequest = () => {}, ignored = [], isHidden = (row: Row) => hidden.includes(row.status) } = options
  const asked: string[] = []
  const fetchPage: FetchPage = ({ ordering, page, pageSize, filters }: PageRequest) => {
    const { status } = filters
    asked.push(`${status ?? 'all'} ${ordering}`)
    onRequest(asked.length)
    const shown = all.filter((row) => (status === undefined ? !isHidden(row) : row.status === status))
    const key = ordering?.endsWith('updated') === true ? 'updated' : 'created'
    const sorted = shown.toSorted((one, other) => Date.parse(one[key]) - Date.parse(other[key]))
    const isFollowed = ordering?.startsWith('-') === true && !ignored.includes(ordering)
    const inOrder = isFollowed ? sorted.toReversed() : sorted
    const records = inOrder.slice((page - 1) * pageSize, page * pageSize)
    const next = page * pageSize < shown.length ? `/list/?page=${page + 1}` : null
    return Promise.resolve<ListPage>({
      records,
      count: shown.length,
      next,
      servedAt: Date.parse('2026-11-21T12:00:30Z'),
    })
  }
  return { fetchPage, asked }
}
