import { NotFound } from '../billing/errors.ts'
import type { ListPage } from '../billing/reply.ts'
import { toInstant } from './instant.ts'
import { isRecord } from './record.ts'

/** Whether records are in the order of a key, oldest first; a chain over that key relies on it. */
export function isInOrder(records: readonly unknown[], key: 'created' | 'updated'): boolean {
  const instants = records.map((record) => (isRecord(record) ? toInstant(record[key]) : undefined))
  return instants.every((at, place) => at !== undefined && (place === 0 || at >= (instants[place - 1] ?? at)))
}

const pageSize = 100
const mostSamples = 6

/**
 * Whether a list is sorted by `updated`, as its first page, its last one, and, if these do not tell, some between them
 * show. In a list that is sorted by `created` instead, both orders are the same wherever no record was changed, so each
 * page must be in the order of `updated`, and one of them in another order than that of `created`. If none is, nothing
 * tells, and such a list must be read as a whole: the next change may be where nobody looks for it.
 */
export async function isSortedByUpdated(
  ask: (request: { page: number; pageSize: number; ordering: string }) => Promise<ListPage>,
): Promise<boolean> {
  const sample = async (page: number) => (await ask({ page, pageSize, ordering: 'updated' })).records
  const { records, count = 0 } = await ask({ page: 1, pageSize, ordering: 'updated' })
  const last = Math.ceil(count / pageSize)
  const samples = [records]
  // A list that one page holds cannot hide a change.
  if (last <= 1) return isInOrder(records, 'updated')
  try {
    samples.push(await sample(last))
    const isTold = () => samples.some((page) => !isCreatedInOrder(page))
    for (let at = 1; at < mostSamples - 1 && !isTold(); at++) {
      const page = 1 + Math.floor((at * (last - 1)) / (mostSamples - 1))
      if (page > 1 && page < last) samples.push(await sample(page))
    }
    if (!isTold()) return false
  } catch (error) {
    // The list has become shorter.
    if (error instanceof NotFound) return false
    throw error
  }
  // Newest first is another order, which the service may have and this one not. Asked last: nothing is newer then.
  const { records: newest } = await ask({ page: 1, pageSize, ordering: '-updated' })
  const oldestFirst = newest.toReversed()
  if (!isInOrder(oldestFirst, 'updated')) return samples.every((page) => isInOrder(page, 'updated'))
  const latest = latestUpdated(oldestFirst)
  return samples.every((page) => isInOrder(page, 'updated') && latestUpdated(page) <= latest)
}

function isCreatedInOrder(records: readonly unknown[]): boolean {
  const instants = records.flatMap((record) => (isRecord(record) && toInstant(record['created'])) || [])
  return instants.every((at, place) => place === 0 || at >= (instants[place - 1] ?? at))
}

function latestUpdated(records: readonly unknown[]): number {
  const last = records.at(-1)
  return (isRecord(last) && toInstant(last['updated'])) || -Infinity
}
