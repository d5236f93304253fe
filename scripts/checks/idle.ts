import { measureIdleConnections } from '../../core/billing/idle-connections.ts'
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
