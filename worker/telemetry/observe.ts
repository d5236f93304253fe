import type { Logger } from '@temporalio/worker'
import type { ActivityObserver } from '../../activities/deps.ts'
import type { CallObserver } from '../../core/billing/calls.ts'
import type { Metrics } from './metrics.ts'
import { Context } from '@temporalio/activity'
import type { ServiceHealth } from './service-health.ts'

/** Reports the client's requests to metrics, health and log, with their run. */
export function requestTelemetry(targets: {
  metrics: Metrics
  health: ServiceHealth
  logger: Logger
}): CallObserver {
  const { metrics, health, logger } = targets
  return (tried) => {
    metrics.request(tried)
    health.record(tried)
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
    if (status === undefined) logger.warn('no complete answer', fields)
    else if (status >= 500 || [401, 403, 429].includes(status)) logger.warn('a request failed', fields)
    else logger.debug('request', fields)
  }
}

/** Reports activity events to metrics and log. */
export function activityTelemetry({
  metrics,
  logger,
}: {
  metrics: Metrics
  logger: Logger
}): ActivityObserver {
  return {
    onPage: (step) => metrics.page(step),
    onEvent(event) {
      if (event.type === 'published') metrics.published(event)
      const { type, ...fields } = event
      const rounded = 'ms' in fields ? { ...fields, ms: Math.round(fields.ms) } : fields
      if (type === 'doubled' || type === 'notNotified') logger.error(type, rounded)
      else logger.info(type, rounded)
    },
  }
}

/** The run of the current activity; undefined outside activities. */
function currentRun(): string | undefined {
  try {
    return Context.current().info.workflowExecution?.workflowId
  } catch {
    return undefined
  }
}
