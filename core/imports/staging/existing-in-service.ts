import type { Billing } from '../../billing/client.ts'
import { retentions } from '../../billing/resources/retentions.ts'
import { textOf } from '../../changes/compare-fields.ts'
import { findUnderRetentionKey, retentionKey } from '../../changes/kinds/create-retention.ts'
import { readList } from '../../reading/read-list.ts'
import { isRecord } from '../../reading/record.ts'

export interface Existing {
  /** Ids in the service, by retention key. */
  ids: Map<string, string[]>
  /** Why some may have been missed; empty if the whole list was read. */
  reasons: string[]
}

interface FindExisting {
  billing: Billing
  /** The retention keys of the file. */
  lookups: ReadonlySet<string>
  testMode: boolean
  readLagMs: number
  concurrency: number
  signal: AbortSignal
}

const pageSize = 100

/**
 * Finds the retentions of a file that the service already has. Reads the list once, for any number of rows;
 * if the file has fewer rows than the list has pages and the service filters, looks up each row instead.
 */
export async function findExisting(options: FindExisting): Promise<Existing> {
  const { billing, lookups, signal } = options
  if (lookups.size === 0) return { ids: new Map(), reasons: [] }
  const { count } = await billing.list({ resource: retentions, page: 1, pageSize: 1, signal })
  const pages = (count ?? Infinity) / pageSize
  return (lookups.size < pages ? await askEach(options) : undefined) ?? (await readAll(options))
}

/** Undefined if the service ignores a filter: its answers then prove nothing. */
async function askEach({ billing, lookups, signal }: FindExisting): Promise<Existing | undefined> {
  const ids: Existing['ids'] = new Map()
  for (const key of lookups) {
    const found = await findUnderRetentionKey({ billing, key, signal })
    if (!found.honoured) return undefined
    if (found.records.length > 0)
      ids.set(
        key,
        found.records.map(({ id }) => textOf(id)),
      )
  }
  return { ids, reasons: [] }
}

async function readAll({ billing, lookups, signal, ...options }: FindExisting): Promise<Existing> {
  const ids: Existing['ids'] = new Map()
  const seen = new Set<string>()
  await using read = readList({
    resource: retentions,
    fetchPage: ({ signal: closed, ...request }) =>
      billing.list({ resource: retentions, ...request, signal: AbortSignal.any([signal, closed]) }),
    now: Date.now,
    idSet: async () => ({ add: (added) => added.map((id) => seen.size !== seen.add(id).size) }),
    ...options,
  })
  for (;;) {
    const step = await read.next()
    if (step.done === true) return { ids, reasons: step.value.reasons }
    for (const record of step.value.records.filter(isRecord)) {
      const id = textOf(record['id'])
      seen.add(id)
      const key = retentionKey(record)
      if (!lookups.has(key)) continue
      const known = ids.get(key) ?? []
      if (!known.includes(id)) ids.set(key, [...known, id])
    }
  }
}
