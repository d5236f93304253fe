import type { Billing } from '../../billing/client.ts'
import type { ListResource } from '../../billing/resources/resource.ts'

export interface FoundRecords {
  records: Record<string, unknown>[]
  /** Whether every record that came back carries what was asked for. Where not, an absence means nothing. */
  honoured: boolean
}

const pageSize = 100
/** 1,000 records under one filter that is meant to find a handful: then it does not filter. */
const mostPages = 10

/** All records of a list that carry what `filters` ask for. */
export async function findRecords({
  billing,
  resource,
  filters,
  carries,
  signal,
}: {
  billing: Billing
  resource: ListResource
  filters: Readonly<Record<string, string>>
  carries: (record: Record<string, unknown>) => boolean
  signal: AbortSignal | undefined
}): Promise<FoundRecords> {
  const records: Record<string, unknown>[] = []
  for (let page = 1; page <= mostPages; page++) {
    const query = { resource, page, pageSize, filters, ...(signal && { signal }) }
    const { records: came, next } = await billing.list(query)
    const objects = came.filter(isObject)
    const matching = objects.filter(carries)
    records.push(...matching)
    if (matching.length < came.length) return { records, honoured: false }
    if (next === null || (next === undefined && came.length < pageSize)) return { records, honoured: true }
  }
  return { records, honoured: false }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
