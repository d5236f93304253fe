import type { NativeConnection } from '@temporalio/worker'
import type { SearchAttributeName } from '../core/runs/search-attributes.ts'

/** Temporal's type numbers. */
const types: Readonly<Record<SearchAttributeName, number>> = { Verdict: 2, NeedsPerson: 5, Resource: 7 }

/**
 * Our search attributes that the namespace has, with the right type; undefined if they cannot be listed. Setting any other
 * would block a workflow.
 */
export async function findSearchAttributes(options: {
  connection: Pick<NativeConnection, 'withDeadline'> & {
    operatorService: Pick<NativeConnection['operatorService'], 'listSearchAttributes'>
  }
  namespace: string
}): Promise<SearchAttributeName[] | undefined> {
  const { connection, namespace } = options
  const ask = () => connection.operatorService.listSearchAttributes({ namespace })
  const found = await connection.withDeadline(Date.now() + 5_000, ask).catch(() => undefined)
  if (found === undefined) return undefined
  return searchAttributeNames.filter((name) => Number(found.customAttributes?.[name]) === types[name])
}

export const searchAttributeNames = Object.keys(types) as SearchAttributeName[]
