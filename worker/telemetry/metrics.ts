import { setTimeout as wait } from 'node:timers/promises'
import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  Registry,
} from 'prom-client'
import type { ActivityObserver, PublishedEvent } from '../../activities/deps.ts'
import type { CallObserver } from '../../core/billing/calls.ts'
import { allResources } from '../../core/billing/resources/lists.ts'
import { destinationNames } from '../../core/destinations/names.ts'
import { isWhole } from '../../core/exports/proven.ts'
import type { Identity } from '../../core/runs/identity.ts'
import { findWorkers, type SeenWorker, workerName } from '../../core/state/postgres/membership.ts'
import { type ChangeState, changeStates } from '../../core/state/schema.ts'
import { Context } from '@temporalio/activity'
import type { Logger } from '@temporalio/worker'
import type { State } from '../../core/state/open.ts'
import { freeBytes } from '../../core/storage/system-errors.ts'
import { version } from '../identity.ts'

interface LastProven {
  resource: string
  destination: string
  /** When the read began, in ms since 1970. */
  at: number
}

interface TelemetryOptions {
  /** Whether the metrics of Node are counted too: what measures them takes CPU until the process ends. */
  ofProcess: boolean
  logger: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
  /** Labels of `connector_info`. */
  info: Readonly<Record<string, string>>
  /** The number of changes by state. */
  countChanges: () => Promise<readonly { state: ChangeState; number: number }[]>
  /** The workers of a state on PostgreSQL; undefined for a state in the data folder. */
  findWorkers?: (() => Promise<readonly SeenWorker[]>) | undefined
  /** Free bytes on the disk of the data folder. */
  freeBytes: () => Promise<number>
  /** The proven exports from before this process; the last of a list counts. */
  proven: readonly LastProven[]
}

/** What observes the client of the service and the activities, and what it has counted. */
export interface Telemetry {
  onRequest: CallObserver
  observer: ActivityObserver
  /** The metrics, in the text format of Prometheus. */
  text(): Promise<string>
}

/** The most time, as a share of the scrape interval, to spend on counting the ledger's changes. */
const countingShare = 0.01

/** Counts and logs what this process does: names, counts and times, never a row or a secret. */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { logger, info, countChanges, findWorkers, freeBytes } = options
  const registry = new Registry()
  if (options.ofProcess) collectDefaultMetrics({ register: registry })
  const ours = <Label extends string>(name: string, help: string, ...labelNames: Label[]) => ({
    name: `connector_${name}`,
    help,
    labelNames,
    registers: [registry],
  })
  const gauge = <Label extends string>(of: GaugeConfiguration<Label>) => new Gauge(of)
  const labels = Object.keys(info)
  gauge(ours('info', 'Always 1; the labels say what this worker serves, and its version.', ...labels)).set(
    { ...info },
    1,
  )
  const requests = new Counter(
    ours(
      'requests_total',
      'Request attempts by status of the answer; `none` if no complete answer came.',
      'operation',
      'status',
    ),
  )
  const refused = gauge(
    ours('refused', '1 if the last answer of the service refused the token or the workspace.'),
  )
  const requestSeconds = new Histogram({
    ...ours(
      'request_seconds',
      'Seconds from sending a request to the complete answer, or to its loss.',
      'operation',
    ),
    buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
  })
  const waitSeconds = new Histogram({
    ...ours('rate_wait_seconds', 'Seconds that requests waited in the queue of the rate limit.', 'operation'),
    buckets: [0.01, 0.1, 1, 10, 60, 600],
  })
  const pages = new Counter(ours('pages_total', 'List pages that reads requested.', 'resource'))
  const records = new Counter(ours('records_total', 'Records that reads wrote to their parts.', 'resource'))
  const exports = new Counter(
    ours('exports_total', 'Publications of a resource, by verdict.', 'resource', 'destination', 'verdict'),
  )
  const publishSeconds = new Histogram({
    ...ours('publish_seconds', 'Seconds that publishing took.', 'resource', 'destination'),
    buckets: [0.1, 1, 10, 60, 600, 3600],
  })
  const proven = gauge(
    ours(
      'last_proven_timestamp_seconds',
      'Start time of the last published read that proved the whole list, or all its changes.',
      'resource',
      'destination',
    ),
  )

  // These are read at each scrape.
  let countedUntil = Number.NEGATIVE_INFINITY
  gauge({
    ...ours('changes', 'Changes of all runs in the ledger, by state, without parked resumes.', 'state'),
    async collect() {
      const begun = performance.now()
      if (begun < countedUntil) return
      // Without the state, the last counts stay.
      const counted = await inTime(countChanges())
      if (counted === undefined) return
      const counts = new Map(counted.map(({ state, number }) => [state, number]))
      for (const state of changeStates) this.set({ state }, counts.get(state) ?? 0)
      const end = performance.now()
      countedUntil = end + (end - begun) / countingShare
    },
  })
  const askWorkers = async () => (findWorkers === undefined ? [] : await inTime(findWorkers()))
  gauge({
    ...ours('worker_seen_seconds', 'Seconds since a worker of the state on PostgreSQL was seen.', 'worker'),
    async collect() {
      const workers = (await askWorkers()) ?? []
      this.reset()
      for (const { worker, ms } of workers) this.set({ worker }, ms / 1000)
    },
  })
  gauge({
    ...ours('state_up', '0 if the state is on PostgreSQL, which does not answer; otherwise 1.'),
    async collect() {
      this.set((await askWorkers()) === undefined ? 0 : 1)
    },
  })
  gauge({
    ...ours('disk_free_bytes', 'Free bytes on the disk of the data folder.'),
    async collect() {
      this.set(await freeBytes())
    },
  })

  // All label sets start at 0: Prometheus sees no increase in a counter that first appears as 1.
  for (const resource of Object.keys(allResources))
    for (const destination of destinationNames)
      for (const verdict of ['proven', 'unproven']) exports.inc({ resource, destination, verdict }, 0)
  const provenAt = new Map<string, number>()
  // Kept parts of an older read may be published after those of a newer one.
  const prove = ({ resource, destination, at }: LastProven) => {
    const key = `${resource} ${destination}`
    const latest = Math.max(at, provenAt.get(key) ?? 0)
    provenAt.set(key, latest)
    proven.set({ resource, destination }, latest / 1000)
  }
  options.proven.forEach(prove)
  const count = ({ resource, destination, verdict, ms, readAt: at, whole }: PublishedEvent) => {
    exports.inc({ resource, destination, verdict })
    publishSeconds.observe({ resource, destination }, ms / 1000)
    if (whole && verdict === 'proven') prove({ resource, destination, at })
  }
  return {
    onRequest({ operation, status, page, attempt, ms, waitedMs }) {
      requests.inc({ operation, status: status ?? 'none' })
      if (status !== undefined) refused.set(status === 401 || status === 403 ? 1 : 0)
      requestSeconds.observe({ operation }, ms / 1000)
      waitSeconds.observe({ operation }, waitedMs / 1000)
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
    },
    observer: {
      onPage(step) {
        pages.inc({ resource: step.resource }, step.pages)
        records.inc({ resource: step.resource }, step.records)
      },
      onEvent(event) {
        if (event.type === 'published') count(event)
        const { type, ...fields } = event
        const rounded = 'ms' in fields ? { ...fields, ms: Math.round(fields.ms) } : fields
        if (type === 'doubled' || type === 'notNotified') logger.error(type, rounded)
        else logger.info(type, rounded)
      },
    },
    text: () => registry.metrics(),
  }
}

/** A scrape waits no longer for the state. */
const stateWithinMs = 5_000

/** Undefined if the work fails or takes too long. */
const inTime = <T>(work: Promise<T>): Promise<T | undefined> =>
  Promise.race([work.catch(() => undefined), wait(stateWithinMs, undefined, { ref: false })])

interface Observed {
  /** Whether the metrics are served. */
  served: boolean
  dataDir: string
  identity: Identity
  state: State
  logger: Logger
}

/** The telemetry of a worker. */
export async function observeWorker(of: Observed): Promise<Telemetry> {
  const { served, dataDir, identity, state, logger } = of
  const { shared } = state
  const { workspace, mode } = identity
  const published = await state.publications.all({ testMode: mode === 'test' })
  return createTelemetry({
    ofProcess: served,
    logger,
    info: { version, workspace, mode, worker: workerName() },
    countChanges: () => state.ledger.totals(),
    findWorkers: shared && (() => findWorkers(shared)),
    freeBytes: () => freeBytes(dataDir),
    proven: published.flatMap((one) =>
      one.workspace === workspace && one.verdict === 'proven' && isWhole(one)
        ? [{ ...one, at: Date.parse(one.startedAt) }]
        : [],
    ),
  })
}

/** The run of the current activity; undefined outside activities. */
function currentRun(): string | undefined {
  try {
    return Context.current().info.workflowExecution?.workflowId
  } catch {
    return undefined
  }
}
