import { setTimeout as wait } from 'node:timers/promises'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { PublishedEvent } from '../../activities/deps.ts'
import type { Try } from '../../core/billing/calls.ts'
import { allResources } from '../../core/billing/resources/lists.ts'
import { destinationNames } from '../../core/destinations/names.ts'
import { isWhole } from '../../core/exports/proven.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { SeenWorker } from '../../core/state/postgres/membership.ts'
import type { PublishedState } from '../../core/state/publications.ts'
import { changeStates, type ChangeState } from '../../core/state/schema.ts'

export interface MetricsOptions {
  /** Labels of `billing_connector_info`. */
  info: Readonly<Record<string, string>>
  /** The number of changes by state. */
  countChanges: () => Promise<readonly { state: ChangeState; number: number }[]>
  /** The workers of a state on PostgreSQL; undefined for a state in the data folder. */
  findWorkers?: (() => Promise<readonly SeenWorker[]>) | undefined
  /** Free bytes on the disk of the data folder. */
  freeBytes: () => Promise<number>
  /** The last proven exports from before this process. */
  proven: readonly LastProven[]
}

export interface Metrics {
  request(tried: Try): void
  page(step: { resource: string; pages: number; records: number }): void
  published(event: PublishedEvent): void
  /** In the text format of Prometheus. */
  text(): Promise<string>
}

/** The most time, as a share of the scrape interval, to spend on counting the ledger's changes. */
const countingShare = 0.01

/** The Prometheus metrics of this process: names, counts and times, never a row or a secret. */
export function createMetrics({
  info,
  countChanges,
  findWorkers,
  freeBytes,
  proven,
}: MetricsOptions): Metrics {
  const registers = [new Registry()]
  const [registry] = registers as [Registry]
  collectDefaultMetrics({ register: registry })
  const make = instruments(registers)
  make.info(info)
  make.changes(countChanges)
  make.state(findWorkers)
  make.diskFree(freeBytes)
  for (const labels of possibleExports()) make.exports.inc(labels, 0)
  const provenAt = new Map<string, number>()
  // Kept parts of an older read may be published after those of a newer one.
  const prove = ({ resource, destination, at }: LastProven) => {
    const key = `${resource} ${destination}`
    const latest = Math.max(at, provenAt.get(key) ?? 0)
    provenAt.set(key, latest)
    make.proven.set({ resource, destination }, latest / 1000)
  }
  proven.forEach(prove)
  return {
    request({ operation, status, ms, waitedMs }) {
      make.requests.inc({ operation, status: status ?? 'none' })
      if (status !== undefined) make.refused.set(status === 401 || status === 403 ? 1 : 0)
      make.requestSeconds.observe({ operation }, ms / 1000)
      make.waitSeconds.observe({ operation }, waitedMs / 1000)
    },
    page({ resource, pages, records }) {
      make.pages.inc({ resource }, pages)
      make.records.inc({ resource }, records)
    },
    published({ resource, destination, verdict, ms, readAt: at, whole }) {
      make.exports.inc({ resource, destination, verdict })
      make.publishSeconds.observe({ resource, destination }, ms / 1000)
      if (whole && verdict === 'proven') prove({ resource, destination, at })
    },
    text: () => registry.metrics(),
  }
}

/** All label sets start at 0: Prometheus sees no increase in a counter that first appears as 1. */
function possibleExports() {
  return Object.keys(allResources).flatMap((resource) =>
    destinationNames.flatMap((destination) =>
      (['proven', 'unproven'] as const).map((verdict) => ({ resource, destination, verdict })),
    ),
  )
}

/** A scrape waits no longer for the state. */
const stateWithinMs = 5_000

/** Undefined if the work fails or takes too long. */
const inTime = <T>(work: Promise<T>): Promise<T | undefined> =>
  Promise.race([work.catch(() => undefined), wait(stateWithinMs, undefined, { ref: false })])

/** Counts the changes at each scrape, unless that would exceed its share of the time. */
function createChangesGauge(
  options: { name: string; help: string; registers: Registry[] },
  count: MetricsOptions['countChanges'],
) {
  let countedUntil = Number.NEGATIVE_INFINITY
  return new Gauge({
    ...options,
    labelNames: ['state'] as const,
    async collect() {
      const begun = performance.now()
      if (begun < countedUntil) return
      // Without the state, the last counts stay.
      const counted = await inTime(count())
      if (counted === undefined) return
      const counts = new Map(counted.map(({ state, number }) => [state, number]))
      for (const state of changeStates) this.set({ state }, counts.get(state) ?? 0)
      const end = performance.now()
      countedUntil = end + (end - begun) / countingShare
    },
  })
}

function instruments(registers: Registry[]) {
  const named = <Label extends string>(name: string, help: string, ...labelNames: Label[]) => ({
    name: `billing_connector_${name}`,
    help,
    labelNames,
    registers,
  })
  return {
    info: (labels: Readonly<Record<string, string>>) =>
      new Gauge(
        named(
          'info',
          'Always 1; the labels say what this worker serves, and its version.',
          ...Object.keys(labels),
        ),
      ).set({ ...labels }, 1),
    changes: (count: MetricsOptions['countChanges']) => {
      const help = 'Changes of all runs in the ledger of the data folder, by state.'
      return createChangesGauge(named('changes', help), count)
    },
    /** The workers of a shared state, and whether it answers. */
    state: (find: MetricsOptions['findWorkers']) => {
      const seen = new Gauge(
        named('worker_seen_seconds', 'Seconds since a worker of the state on PostgreSQL was seen.', 'worker'),
      )
      return new Gauge({
        ...named('state_up', '0 if the state is on PostgreSQL, which does not answer; otherwise 1.'),
        async collect() {
          const workers = find === undefined ? [] : await inTime(find())
          this.set(workers === undefined ? 0 : 1)
          seen.reset()
          for (const { worker, ms } of workers ?? []) seen.set({ worker }, ms / 1000)
        },
      })
    },
    diskFree: (freeBytes: MetricsOptions['freeBytes']) =>
      new Gauge({
        ...named('disk_free_bytes', 'Free bytes on the disk of the data folder.'),
        async collect() {
          this.set(await freeBytes())
        },
      }),
    requests: new Counter(
      named(
        'requests_total',
        'Request attempts by status of the answer; `none` if no complete answer came.',
        'operation',
        'status',
      ),
    ),
    refused: new Gauge(
      named('refused', '1 if the last answer of the service refused the token or the workspace.'),
    ),
    requestSeconds: new Histogram({
      ...named(
        'request_seconds',
        'Seconds from sending a request to the complete answer, or to its loss.',
        'operation',
      ),
      buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
    }),
    waitSeconds: new Histogram({
      ...named(
        'rate_wait_seconds',
        'Seconds that requests waited in the queue of the rate limit.',
        'operation',
      ),
      buckets: [0.01, 0.1, 1, 10, 60, 600],
    }),
    pages: new Counter(named('pages_total', 'List pages that reads requested.', 'resource')),
    records: new Counter(named('records_total', 'Records that reads wrote to their parts.', 'resource')),
    exports: new Counter(
      named('exports_total', 'Publications of a resource, by verdict.', 'resource', 'destination', 'verdict'),
    ),
    publishSeconds: new Histogram({
      ...named('publish_seconds', 'Seconds that publishing took.', 'resource', 'destination'),
      buckets: [0.1, 1, 10, 60, 600, 3600],
    }),
    proven: new Gauge(
      named(
        'last_proven_timestamp_seconds',
        'Start time of the last published read that proved the whole list, or all its changes.',
        'resource',
        'destination',
      ),
    ),
  }
}

export interface LastProven {
  resource: string
  destination: string
  /** When the read began, in ms since 1970. */
  at: number
}

/** The last proven whole read of each resource in each destination. */
export async function findLastProven(options: {
  state: PublishedState
  identity: Identity
}): Promise<LastProven[]> {
  const { state, identity } = options
  const published = await state.publications.all({ testMode: identity.mode === 'test' })
  const latest = new Map<string, LastProven>()
  for (const one of published) {
    if (one.workspace !== identity.workspace || one.verdict !== 'proven' || !isWhole(one)) continue
    const { resource, destination } = one
    latest.set(`${resource} ${destination}`, { resource, destination, at: Date.parse(one.startedAt) })
  }
  return [...latest.values()]
}
