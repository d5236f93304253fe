import type { Connection } from '@temporalio/client'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The search attributes of runs, created when the server starts. */
export const searchAttributes = { Verdict: 'Keyword', NeedsPerson: 'Bool', Resource: 'KeywordList' } as const

/** Connection options for a server on this machine, which must not use a proxy. */
export const localChannel = { channelArgs: { 'grpc.enable_http_proxy': 0 } } as const

/**
 * Waits until the server answers and has the namespace and the search attributes, and makes it keep runs for 30 days
 * after their end. False if it ended or timed out first.
 */
export async function becomesReady(server: {
  address: string
  isAlive: () => boolean
  timeoutMs: number
}): Promise<boolean> {
  const deadline = performance.now() + server.timeoutMs
  const goesOn = () => server.isAlive() && performance.now() < deadline
  // Probes the port first, because a refused gRPC channel waits a second before it retries.
  while (goesOn() && !(await isOpen(server.address))) await sleep(10)
  while (goesOn()) {
    if (await answers(server.address)) return server.isAlive()
    await sleep(20)
  }
  return false
}

/** Whether anything listens on the port. */
export function isOpen(address: string): Promise<boolean> {
  const [host, port] = address.split(':')
  return new Promise((resolve) => {
    const socket = connect({ host: host ?? '', port: Number(port) })
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** A dev server's own default is one day, after which last week's runs would be gone. */
const retentionDays = 30

async function answers(address: string): Promise<boolean> {
  // Loaded late, while the server starts: a command starts it before it loads anything of Temporal.
  const { Connection } = await import('@temporalio/client')
  const connection = Connection.lazy({ address, ...localChannel })
  try {
    return await connection.withDeadline(Date.now() + 2_000, async () => {
      const { customAttributes } = await connection.operatorService.listSearchAttributes({
        namespace: 'default',
      })
      if (!Object.keys(searchAttributes).every((name) => name in customAttributes)) return false
      // The type requires a long, but a number is accepted.
      const seconds = (retentionDays * 86_400) as unknown as NonNullable<DurationSeconds>
      await connection.workflowService.updateNamespace({
        namespace: 'default',
        config: { workflowExecutionRetentionTtl: { seconds } },
      })
      return true
    })
  } catch {
    return false
  } finally {
    await connection.close()
  }
}

type UpdateNamespace = Parameters<Connection['workflowService']['updateNamespace']>[0]
type DurationSeconds = NonNullable<
  NonNullable<NonNullable<UpdateNamespace['config']>['workflowExecutionRetentionTtl']>['seconds']
>
