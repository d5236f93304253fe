import type { NativeConnection } from '@temporalio/worker'
import type { SearchAttributeName } from '../core/runs/search-attributes.ts'

/** Temporal's numbers of the types. */
const types: Readonly<Record<SearchAttributeName, number>> = { Verdict: 2, NeedsPerson: 5, Resource: 7 }

/**
 * The search attributes of ours that the namespace has, with the right type. A workflow that sets any other would hang, so
 * if they cannot be listed, the run sets none.
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
