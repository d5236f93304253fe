import type { Logger } from '@temporalio/worker'
import type { ActivityObserver } from '../../activities/activity-event.ts'
import type { CallObserver } from '../../core/billing/calls.ts'
import type { Metrics } from './metrics.ts'
import { currentRun } from './run-id.ts'
import type { ServiceHealth } from './service-health.ts'

/** Passes what the client tells of its requests on to metrics, health and log, with the run they were made for. */
export function observeRequests(to: {
  metrics: Metrics
  health: ServiceHealth
  logger: Logger
}): CallObserver {
  const { metrics, health, logger } = to
  return (tried) => {
    metrics.request(tried)
    health.heard(tried)
    const { operation, status, page, attempt, ms, waitedMs } = tried
    const [verb, list] = operation.split(' ')
    const fields = {
      run: currentRun(),
      ...(verb === 'list' && { resource: list }),
      ...(page !== undefined && { page }),
      operation,
      status: status ?? null,
      attempt,
      ms: Math.round(ms),
      waitedMs: Math.round(waitedMs),
    }
    if (status === undefined) logger.warn('no whole answer', fields)
    else if (status >= 500 || [401, 403, 429].includes(status)) logger.warn('a request failed', fields)
    else logger.debug('request', fields)
  }
}

/** Passes on what the activities tell of their work. */
export function observeActivities({
  metrics,
  logger,
}: {
  metrics: Metrics
  logger: Logger
}): ActivityObserver {
  return {
    took: (step) => metrics.took(step),
    did(deed) {
      if (deed.did === 'published') metrics.published(deed)
      const { did, ...fields } = deed
      const rounded = 'ms' in fields ? { ...fields, ms: Math.round(fields.ms) } : fields
      logger.info(did, rounded)
    },
  }
}
