import type { NativeConnection } from '@temporalio/worker'
import type { SearchAttributeName } from '../core/runs/search-attributes.ts'

/** Temporal's type numbers. */
const types: Readonly<Record<SearchAttributeName, number>> = { Verdict: 2, NeedsPerson: 5, Resource: 7 }

/**
 * Our search attributes that the namespace has, with the right type. Setting any other would block a
 * workflow, so if they cannot be listed, the run sets none.
 */
export async function findSearchAttributes(options: {
  connection: NativeConnection
  namespace: string
}): Promise<SearchAttributeName[]> {
  const { connection, namespace } = options
  const ask = () => connection.operatorService.listSearchAttributes({ namespace })
  const found = await connection.withDeadline(Date.now() + 5_000, ask).catch(() => undefined)
  const there = Object.entries(types).filter(
    ([name, type]) => Number(found?.customAttributes?.[name]) === type,
  )
  return there.map(([name]) => name as SearchAttributeName)
}
