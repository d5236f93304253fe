import { once } from 'node:events'
import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Billing } from '../../core/billing/client.ts'
import { listResources } from '../../core/billing/resources/lists.ts'
import type { ListResource } from '../../core/billing/resources/filters.ts'
import { isInOrder, isSortedByUpdated } from '../../core/reading/order.ts'
import { toUnmovedSentence } from '../../core/reading/outcome.ts'
import { formatDuration } from '../../core/runs/view/format.ts'
import { type Finding, fine, runCheck, wrong } from './places.ts'
import { connectionOptions } from '../../core/billing/connections.ts'
import type { Settings } from '../../worker/settings/settings.ts'

/** Three tries are enough, because a person is waiting. */
const tries = 3

/** Checks that the service accepts the token and the workspace, and what a read of each list can prove. */
export async function checkService(options: { billing: Billing; testMode: boolean }): Promise<Finding[]> {
  const [reached, ...clock] = await runCheck('service', async () => {
    const asked = Date.now()
    const { servedAt } = await options.billing.list({
      resource: listResources.plans,
      page: 1,
      pageSize: 1,
      tries,
    })
    return [fine('service', 'It accepts this token and workspace.'), ...compareClocks({ asked, servedAt })]
  })
  if (reached?.status !== 'ok') return reached === undefined ? [] : [reached]
  const lists = await Promise.all(
    Object.values(listResources).map((resource) =>
      runCheck(resource.name, () => checkList({ ...options, resource })),
    ),
  )
  return [reached, ...clock, ...lists.flat()]
}

/** The tolerated difference in ms: NTP keeps clocks within milliseconds, and the Date header has whole seconds. */
const mostSkewMs = 60_000

/** No finding if the clocks agree or the service sends no Date. */
function compareClocks({ asked, servedAt }: { asked: number; servedAt: number | undefined }): Finding[] {
  if (servedAt === undefined) return []
  const answered = Date.now()
  const ahead = servedAt < asked ? asked - servedAt : Math.min(0, answered - servedAt)
  if (Math.abs(ahead) <= mostSkewMs) return []
  const off = `${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'}`
  return [
    wrong(
      'clock',
      `This machine's clock is ${off} the service's. Enable NTP (timedatectl set-ntp true): schedules, ages and timeouts depend on it.`,
    ),
  ]
}

async function checkList(options: {
  billing: Billing
  testMode: boolean
  resource: ListResource
}): Promise<Finding[]> {
  const { billing, testMode, resource } = options
  const ask = async (ordering: string) =>
    (await billing.list({ resource, page: 1, pageSize: 100, ordering, tries })).records as Record<
      string,
      unknown
    >[]
  const [up, down] = [await ask('created'), await ask('-created')]
  const foreign = up.filter(
    (record) => typeof record['test_mode'] === 'boolean' && record['test_mode'] !== testMode,
  )
  const findings =
    foreign.length === 0
      ? []
      : [
          wrong(
            resource.name,
            `The service ignores the test-mode header: it returned ${foreign.length} records of the other mode.`,
          ),
        ]
  const ascending = isInOrder(up, 'created')
  const descending = isInOrder(down.toReversed(), 'created')
  const incremental = await isSortedByUpdated((request) => billing.list({ resource, ...request, tries }))
  if (!ascending)
    return [
      ...findings,
      wrong(resource.name, 'The service does not sort by `created`: no read of this list can be proven.'),
    ]
  const how = descending
    ? ''
    : ' (the service does not sort by `-created`: reads find the newest records from the end)'
  const unmoved = resource.unmoved === undefined ? '' : ` ${toUnmovedSentence(resource.unmoved)}`
  const keepUp = incremental
    ? unmoved
    : ' Nothing shows that the service sorts by `updated`: incremental exports read the whole list.'
  return [...findings, fine(resource.name, `A read of this list can be proven${how}.${keepUp}`)]
}

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
  const open = () => request(url, { agent, headers: { 'user-agent': 'connector' } })
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
