import { Context } from '@temporalio/activity'
import type { Logger } from '@temporalio/worker'
import type { ActivityObserver } from '../../activities/deps.ts'
import type { CallObserver } from '../../core/billing/calls.ts'
import type { Billing } from '../../core/billing/client.ts'
import { listResources } from '../../core/billing/resources/lists.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { State } from '../../core/state/open.ts'
import { findWorkers, workerName } from '../../core/state/postgres/membership.ts'
import { freeBytes } from '../../core/storage/system-errors.ts'
import { version } from '../identity.ts'
import { createService } from '../service.ts'
import type { Settings } from '../settings/settings.ts'
import { createServiceHealth, type ServiceHealth } from './health.ts'
import { createMetrics, findLastProven, type Metrics } from './metrics.ts'

/** The client of the service, observed, with what observes it and the activities. */
export interface Instruments {
  billing: Billing
  metrics: Metrics
  health: ServiceHealth
  observer: ActivityObserver
}

export async function createInstruments(options: {
  settings: Settings
  identity: Identity
  state: State
  logger: Logger
}): Promise<Instruments> {
  const { settings, identity, state, logger } = options
  const { shared } = state
  const { workspace, mode } = identity
  const metrics = createMetrics({
    info: { version, workspace, mode, worker: workerName() },
    countChanges: () => state.ledger.totals(),
    findWorkers: shared && (() => findWorkers(shared)),
    freeBytes: () => freeBytes(settings.dataDir),
    proven: await findLastProven(options),
  })
  const health = createServiceHealth({
    ping: () => billing.list({ resource: listResources.plans, page: 1, pageSize: 1, tries: 1 }),
  })
  const onRequest = observeRequests({ metrics, health, logger })
  const billing = createService(settings, { onRequest, shares: state.rateShares })
  return { billing, metrics, health, observer: observeActivities({ metrics, logger }) }
}

interface Targets {
  metrics: Metrics
  health: ServiceHealth
  logger: Logger
}

/** Reports the client's requests to metrics, health and log, with their run. */
function observeRequests({ metrics, health, logger }: Targets): CallObserver {
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
function observeActivities({ metrics, logger }: Omit<Targets, 'health'>): ActivityObserver {
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
