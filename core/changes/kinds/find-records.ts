import { isRecord } from '../../billing/lossless-json.ts'
import type { Billing } from '../../billing/client.ts'
import type { ListResource } from '../../billing/resources/filters.ts'

export interface FoundRecords {
  records: Record<string, unknown>[]
  /** Whether every record returned matches the filters, and none is counted but not shown. If not, an absence means nothing. */
  honoured: boolean
}

const pageSize = 100
/** These filters match a handful of records. With 1,000 records returned, the service does not filter. */
const maxPages = 10

/** All records of a list that match `filters`. */
export async function findRecords(options: {
  billing: Billing
  resource: ListResource
  filters: Readonly<Record<string, string>>
  carries: (record: Record<string, unknown>) => boolean
  signal: AbortSignal | undefined
}): Promise<FoundRecords> {
  const { billing, resource, filters, carries, signal } = options
  const records: Record<string, unknown>[] = []
  for (let page = 1; page <= maxPages; page++) {
    const query = { resource, page, pageSize, filters, fresh: true, ...(signal && { signal }) }
    const { records: returned, next, count = 0 } = await billing.list(query)
    const objects = returned.filter(isRecord)
    const matching = objects.filter(carries)
    records.push(...matching)
    if (matching.length < returned.length) return { records, honoured: false }
    if (next === null || (next === undefined && returned.length < pageSize))
      return { records, honoured: records.length >= count }
  }
  return { records, honoured: false }
}
