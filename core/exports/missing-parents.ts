import type { Billing } from '../billing/client.ts'
import { BillingError, NotFound, Refused, Unauthorized } from '../billing/errors.ts'
import type { ListPage } from '../billing/reply.ts'
import { createFilters, statusesOf } from '../billing/resources/filters.ts'
import { type ListName, listResources } from '../billing/resources/lists.ts'
import type { DanglingReason } from '../destinations/manifest.ts'
import type { NamedId } from '../destinations/duckdb/references.ts'
import { idOf, isRecord, type SourceRecord } from '../reading/record.ts'

/** A field of a list, and the list whose records it names. */
export interface Field {
  resource: ListName
  /** Its path in the record: `lines.plan`. */
  path: string
  to: ListName
}

export interface LookUps {
  billing: Billing
  /** How many requests are left. */
  left: number
  signal: AbortSignal
}

/**
 * Looks up records that a list should have and that its read did not bring. There is no request for a customer or a plan
 * by its id: a customer is found by a subscription, a plan under one of the statuses. What the answers do not show for sure
 * is unknown.
 *
 * @param options.reasonOf why a record that the service does have is not in the export
 */
export async function lookUpMissing(options: {
  field: Field
  missing: readonly NamedId[]
  lookUps: LookUps
  reasonOf: (record: SourceRecord) => DanglingReason
}): Promise<DanglingReason[]> {
  const { field, missing, lookUps, reasonOf } = options
  const { resource, to, path } = field
  const isLinked = Object.hasOwn(listResources[to].filters, resource)
  const named = listResources[resource].filters[path]
  if (isLinked && named !== undefined) {
    const reasons: DanglingReason[] = []
    for (const one of missing) reasons.push(await lookUpByChild({ ...field, ...one, lookUps, reasonOf }))
    return reasons
  }
  const listed = await listByStatus(to, new Set(missing.map(({ id }) => id)), lookUps)
  return missing.map(({ id }) => {
    const record = listed.records.get(id)
    return record === undefined ? (listed.isWhole ? 'deleted' : 'unknown') : reasonOf(record)
  })
}

/** By a record that names it. If that one is gone or names another by now, then by one that does. */
async function lookUpByChild(
  of: Field & NamedId & { lookUps: LookUps; reasonOf: (record: SourceRecord) => DanglingReason },
): Promise<DanglingReason> {
  const { resource, path, to, id, lookUps, reasonOf } = of
  const filters = { [path]: id }
  let child = of.from
  for (let time = 1; time <= 2; time++) {
    const linked = await ask(lookUps, { resource: to, filters: { [resource]: child }, pageSize: 2 })
    // A list that ignores the filter shows many.
    if (linked === undefined || linked.records.length > 1 || (linked.count ?? 0) > 1) return 'unknown'
    const [record] = linked.records
    if (idOf(record) === id) return reasonOf(record as SourceRecord)
    const naming = await ask(lookUps, { resource, filters, pageSize: 1 })
    const [other] = naming?.records ?? []
    if (naming !== undefined && other === undefined) return 'unnamed'
    const next = idOf(other)
    if (!isRecord(other) || next === undefined) return 'unknown'
    if (createFilters(listResources[resource], filters).broken(other) !== undefined) return 'unknown'
    if (next === child) return record === undefined ? 'deleted' : 'unknown'
    child = next
  }
  return 'unknown'
}

/** Every record under any status, in as many pages as the wanted ones take. */
async function listByStatus(
  to: ListName,
  wanted: ReadonlySet<string>,
  lookUps: LookUps,
): Promise<{ records: ReadonlyMap<string, SourceRecord>; isWhole: boolean }> {
  const records = new Map<string, SourceRecord>()
  const statuses = statusesOf(listResources[to])
  const none = { records, isWhole: false }
  for (const status of statuses) {
    const filters = { status }
    const filter = createFilters(listResources[to], filters)
    let counted: number | undefined
    for (let page = 1; ; page++) {
      if (records.size === wanted.size) return none
      const shown = await ask(lookUps, { resource: to, filters, page, pageSize: 100 })
      counted ??= shown?.count
      // A list that changes between its pages may have skipped a record.
      if (shown?.count === undefined || shown.count !== counted) return none
      for (const record of shown.records) {
        if (!isRecord(record) || filter.broken(record) !== undefined) return none
        const id = idOf(record)
        if (id !== undefined && wanted.has(id)) records.set(id, record)
      }
      if (page * 100 >= counted) break
    }
  }
  return { records, isWhole: statuses.length > 0 }
}

/** Undefined if there is no answer that says something. An id that the service does not know may be refused. */
async function ask(
  lookUps: LookUps,
  query: { resource: ListName; filters: Record<string, string>; page?: number; pageSize: number },
): Promise<Pick<ListPage, 'records' | 'count'> | undefined> {
  if (lookUps.left <= 0) return undefined
  lookUps.left -= 1
  const { billing, signal } = lookUps
  const resource = listResources[query.resource]
  try {
    const ordering = '-created'
    return await billing.list({ page: 1, ordering, tries: 3, fresh: true, ...query, resource, signal })
  } catch (error) {
    if (!(error instanceof BillingError) || error instanceof Unauthorized) throw error
    const isAnswer = (error instanceof Refused || error instanceof NotFound) && error.byService
    return isAnswer ? { records: [], count: 0 } : undefined
  }
}
