import type { Client } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import type { SearchAttributeName } from '../core/runs/name.ts'

/**
 * The times of a schedule after `from`, up to `to` (ms since 1970), as Temporal computes them for its
 * current definition.
 */
export async function timesOf(range: {
  client: Client
  scheduleId: string
  from: number
  to: number
}): Promise<number[]> {
  const { client, scheduleId, to } = range
  const times: number[] = []
  // The server limits each response; every request continues after the last time.
  for (let from = range.from; from < to; from = times.at(-1) ?? to) {
    const { startTime: found } = await client.workflowService.listScheduleMatchingTimes({
      namespace: client.options.namespace,
      scheduleId,
      startTime: toTimestamp(from),
      endTime: toTimestamp(to),
    })
    const more = (found ?? []).map(toMs).filter((at) => at > from)
    if (more.length === 0) return times
    times.push(...more)
  }
  return times
}

type Timestamp = NonNullable<
  Parameters<Client['workflowService']['listScheduleMatchingTimes']>[0]['startTime']
>

const toTimestamp = (ms: number): Timestamp => ({
  // Seconds are a Long in the type, but a number is accepted.
  seconds: Math.floor(ms / 1000) as unknown as NonNullable<Timestamp['seconds']>,
  nanos: (ms % 1000) * 1e6,
})

const toMs = ({ seconds, nanos }: Timestamp): number => Number(seconds) * 1000 + (nanos ?? 0) / 1e6

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
