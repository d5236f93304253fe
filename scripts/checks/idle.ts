import { once } from 'node:events'
import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connectionOptions } from '../../core/billing/connections.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fine, runCheck, wrong, type Finding } from './finding.ts'

/** How much longer than needed a connection is watched. */
const margin = 1.1

/**
 * Measures how long the service keeps idle connections. A request that a frozen worker writes when it continues goes out on
 * the connection it had: the service must have closed it before the row is sent again.
 */
export async function checkIdle({
  billing,
  settleSeconds,
}: Pick<Settings, 'billing' | 'settleSeconds'>): Promise<Finding[]> {
  const sentAgainMs = 3 * settleSeconds * 1000
  return await runCheck('idle connections', async () => {
    const { unused, used } = await measureIdleConnections({
      url: billing.baseUrl,
      withinMs: margin * sentAgainMs,
    })
    const again = `a row is sent again after ${inSeconds(sentAgainMs)} at the earliest`
    if (unused !== undefined && used !== undefined && Math.max(unused, used) < sentAgainMs)
      return [
        fine(
          'idle connections',
          `The service closes an idle connection after ${inSeconds(unused)}, after a request ${inSeconds(used)}; ${again}.`,
        ),
      ]
    return [
      wrong(
        'idle connections',
        `The service keeps an idle connection open for more than ${inSeconds(sentAgainMs)}, and ${again}: with the state on ` +
          'PostgreSQL, a worker that freezes in the instant of sending could double a row. Raise BILLING_SETTLE_SECONDS ' +
          'above a third of the idle time, or keep the state in the data folder.',
      ),
    ]
  })
}

const inSeconds = (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`

/** How long the service keeps two idle connections: one on which nothing was ever sent, and one that answered a request. */
async function measureIdleConnections({ url, withinMs }: { url: string; withinMs: number }) {
  const [Agent, request] = url.startsWith('https:') ? [HttpsAgent, requestHttps] : [HttpAgent, requestHttp]
  const agent = new Agent(connectionOptions({ url, maxConnections: 2, keepAlive: true }))
  // Node's agents close a connection a second before the service says that it would.
  agent.keepSocketAlive = () => true
  const open = () => request(url, { agent, headers: { 'user-agent': 'billing-connector' } })
  const connect = async () => {
    const [socket] = (await once(
      open().on('error', () => {}),
      'socket',
    )) as [Socket]
    return await msUntilClosed(socket, withinMs)
  }
  const ask = async () => {
    const [response] = (await once(open().end(), 'response')) as [NodeJS.ReadableStream & { socket: Socket }]
    const { socket } = response
    await once(response.resume(), 'end')
    return await msUntilClosed(socket, withinMs)
  }
  try {
    const [unused, used] = await Promise.all([connect(), ask()])
    return { unused, used }
  } finally {
    agent.destroy()
  }
}

/** Undefined if the connection is still open after the time. */
async function msUntilClosed(socket: Socket, withinMs: number): Promise<number | undefined> {
  const begun = performance.now()
  if (socket.destroyed) return 0
  socket.on('error', () => {})
  const closed = once(socket, 'close').then(() => performance.now() - begun)
  return await Promise.race([closed, wait(withinMs, undefined, { ref: false })])
}
