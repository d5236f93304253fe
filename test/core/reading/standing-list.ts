import { toTimestamp } from '../../../core/billing/instants.ts'
import type { FetchPage } from '../../../core/reading/range-state.ts'
import { start } from './drifting-list.ts'

/** A list that stands still and has no ties; its records are made when they are asked for. */
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
