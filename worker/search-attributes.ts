import type { NativeConnection } from '@temporalio/worker'
import type { SearchAttributeName } from '../core/runs/search-attributes.ts'

/** Temporal's own numbers of the types. */
const types: Readonly<Record<SearchAttributeName, number>> = { Verdict: 2, NeedsPerson: 5, Resource: 7 }

/**
 * Which of the search attributes that runs are found by the namespace has, each of its type. A workflow that sets
 * another would hang: if they can't be listed there are none, for the run that asks.
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
