import { NotFound, Refused } from '../billing/errors.ts'
import type { ListPage } from '../billing/reply.ts'
import { toInstant } from '../billing/instants.ts'
import { idOf, isRecord } from './record.ts'

/** Whether records are in the order of a key, oldest first; a chain over that key relies on it. */
export function isInOrder(records: readonly unknown[], key: 'created' | 'updated'): boolean {
  const instants = records.map((record) => (isRecord(record) ? toInstant(record[key]) : undefined))
  return instants.every((at, place) => at !== undefined && (place === 0 || at >= (instants[place - 1] ?? at)))
}

const pageSize = 100
const mostSamples = 6

type Ask = (request: { page: number; pageSize: number; ordering: string }) => Promise<ListPage>

/**
 * Whether a list is sorted by `updated`, as its first page, its last one, and, if these do not tell, some between them
 * show. In a list that is sorted by `created` or by id instead, these orders are the same wherever no record was changed,
 * so each page must be in the order of `updated`, and one of them in neither of the others. If none is, nothing tells, and
 * such a list must be read as a whole: the next change may be where nobody looks for it.
 */
export async function isSortedByUpdated(ask: Ask): Promise<boolean> {
  try {
    return await showsOrder(ask)
  } catch (error) {
    // The list has become shorter, or the service refuses the order or pages that far down.
    if (error instanceof NotFound || error instanceof Refused) return false
    throw error
  }
}

async function showsOrder(ask: Ask): Promise<boolean> {
  const sample = async (page: number) => (await ask({ page, pageSize, ordering: 'updated' })).records
  const { records, count, next } = await ask({ page: 1, pageSize, ordering: 'updated' })
  const isAll =
    typeof next !== 'string' && (count === undefined ? records.length < pageSize : count === records.length)
  // A list that one page holds cannot hide a change.
  if (isAll) return isInOrder(records, 'updated')
  // A page may hold less than it was asked for.
  const last = Math.ceil((count ?? 0) / Math.max(1, records.length))
  const samples = [records]
  if (last > 1) samples.push(await sample(last))
  const isTold = () => samples.some(isByUpdatedAlone)
  for (let at = 1; at < mostSamples - 1 && !isTold(); at++) {
    const page = 1 + Math.floor((at * (last - 1)) / (mostSamples - 1))
    if (page > 1 && page < last) samples.push(await sample(page))
  }
  if (!isTold()) return false
  // Newest first is another order, which the service may have and this one not. Asked last: nothing is newer then.
  const { records: newest } = await ask({ page: 1, pageSize, ordering: '-updated' })
  // A service that ignores both orders shows its own one twice.
  if (newest.every((record, at) => idOf(record) === idOf(records[at]))) return false
  const oldestFirst = newest.toReversed()
  if (!isInOrder(oldestFirst, 'updated')) return samples.every((page) => isInOrder(page, 'updated'))
  const latest = latestUpdated(oldestFirst)
  return samples.every((page) => isInOrder(page, 'updated') && latestUpdated(page) <= latest)
}

const collator = new Intl.Collator('en', { numeric: true })

/** Where `updated` rises, `created` and the id both rise and fall. Records with one `updated` tell nothing. */
function isByUpdatedAlone(records: readonly unknown[]): boolean {
  const rows = records.flatMap((record) => {
    if (!isRecord(record)) return []
    const [created, updated] = [toInstant(record['created']), toInstant(record['updated'])]
    return created === undefined || updated === undefined
      ? []
      : [{ created, updated, id: idOf(record) ?? '' }]
  })
  type Row = (typeof rows)[number]
  const isBothWays = (compare: (one: Row, other: Row) => number) =>
    [1, -1].every((way) =>
      rows.some((one, at) =>
        rows.slice(at + 1).some((other) => other.updated > one.updated && compare(one, other) * way > 0),
      ),
    )
  return (
    isBothWays((one, other) => one.created - other.created) &&
    isBothWays((one, other) => collator.compare(one.id, other.id))
  )
}

function latestUpdated(records: readonly unknown[]): number {
  const last = records.at(-1)
  return (isRecord(last) && toInstant(last['updated'])) || -Infinity
}
