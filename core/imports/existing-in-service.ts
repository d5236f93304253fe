import type { Billing } from '../billing/client.ts'
import type { ListPage } from '../billing/reply.ts'
import { readDown } from '../changes/audit-retentions.ts'
import { textOf } from '../changes/compare-fields.ts'
import { findUnderRetentionKey, isFound, looseKey, retentionKey } from '../changes/kinds/create-retention.ts'
import { isRecord, type SourceRecord } from '../reading/record.ts'

export interface Existing {
  /** Ids in the service, by retention key. */
  ids: Map<string, string[]>
  /** Why some may have been missed; empty if what is not here is absent. */
  reasons: string[]
}

interface FindExisting {
  billing: Billing
  /** The retention keys of the file. */
  lookups: ReadonlySet<string>
  /** The first page of the list, newest first. */
  newest: ListPage
  testMode: boolean
  readLagMs: number
  signal: AbortSignal
}

const pageSize = 100
/** A lookup, and after one that finds nothing its control. */
const requestsPerRow = 2

/**
 * Finds the retentions of a file that the service already has. Reads the list once, for any number of rows. Looks up each
 * row instead if that costs less, or if the list could not be read, where the service filters.
 */
export async function findExisting(options: FindExisting): Promise<Existing> {
  const { lookups, newest } = options
  if (lookups.size === 0) return { ids: new Map(), reasons: [] }
  const pages = (newest.count ?? Infinity) / pageSize
  const isShort = lookups.size * requestsPerRow < pages
  const found = isShort ? await askEach(options) : undefined
  if (found !== undefined) return found
  const read = await readAll(options)
  return read.reasons.length === 0 || isShort ? read : ((await askEach(options)) ?? read)
}

/**
 * Undefined if an absence proves nothing, because the service ignores a filter, or because filters do not find a record
 * that the list shows: the newest with the same type of document. The control follows each absence, because an earlier
 * one says nothing about the list now, and the first absence is asked for again after it.
 */
async function askEach({ billing, lookups, newest, signal }: FindExisting): Promise<Existing | undefined> {
  const ids: Existing['ids'] = new Map()
  const controls = new Map<string | undefined, SourceRecord>()
  for (const record of newest.records.filter(isRecord).toReversed())
    controls.set(documentIn(retentionKey(record)), record)
  const controlled = new Set<string | undefined>()
  for (const key of lookups) {
    const { records, honoured } = await findUnderRetentionKey({ billing, key, signal })
    if (!honoured) return undefined
    if (records.length > 0)
      ids.set(
        key,
        records.map(({ id }) => textOf(id)),
      )
    else {
      const document = documentIn(key)
      const record = controls.get(document)
      if (record === undefined || !(await isFound({ billing, record, signal }))) return undefined
      // Its filters may have begun to find between the two.
      const isFirst = !controlled.has(document)
      if (isFirst && (await findUnderRetentionKey({ billing, key, signal })).records.length > 0)
        return undefined
      controlled.add(document)
    }
  }
  return { ids, reasons: [] }
}

const documentIn = (key: string) => (JSON.parse(key) as string[])[1]

async function readAll(options: FindExisting): Promise<Existing> {
  const { billing, lookups, newest, signal } = options
  const ids: Existing['ids'] = new Map()
  const alike = Map.groupBy(lookups, looseKey)
  let isEmptied = newest.records.length > 0
  const take = async (records: readonly SourceRecord[]) => {
    isEmptied &&= records.length === 0
    for (const record of records) {
      const id = textOf(record['id'])
      const key = retentionKey(record)
      for (const asked of alike.get(looseKey(key)) ?? []) {
        const known = ids.get(asked) ?? []
        if (known.includes(id) || (asked !== key && !(await isSame({ billing, key: asked, id, signal }))))
          continue
        ids.set(asked, [...known, id])
      }
    }
  }
  const { reasons } = await readDown(options, { bound: -Infinity, take })
  return { ids, reasons: isEmptied ? [...reasons, 'the list is empty now, and was not before'] : reasons }
}

/** Whether the service takes two spellings of a supplier for the same: then its filter finds one by the other. */
async function isSame({ id, ...asked }: Parameters<typeof findUnderRetentionKey>[0] & { id: string }) {
  const { records } = await findUnderRetentionKey(asked)
  return records.some((record) => textOf(record['id']) === id)
}
