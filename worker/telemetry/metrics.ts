import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { destinationNames } from '../../core/destinations/names.ts'
import type { Published } from '../../activities/activity-event.ts'
import { allResources } from '../../core/billing/resources/all-resources.ts'
import type { Try } from '../../core/billing/calls.ts'
import type { LastProven } from './last-proven.ts'
import { changeStates, type ChangeState } from '../../core/state/tables.ts'

export interface MetricsOptions {
  /** Labels of `billing_connector_info`. */
  info: Readonly<Record<string, string>>
  /** How many changes stand where. */
  countChanges: () => Promise<readonly { state: ChangeState; number: number }[]>
  /** On the disk of the data folder. */
  freeBytes: () => Promise<number>
  /** What was proven last, from before this process. */
  proven: readonly LastProven[]
}

export interface Metrics {
  request(tried: Try): void
  took(step: { resource: string; pages: number; records: number }): void
  published(what: Published): void
  /** In the text format of Prometheus. */
  text(): Promise<string>
}

/** Of the time between two scrapes, so much at most goes into counting the changes of the ledger. */
const countingShare = 0.01

/** What Prometheus is told of this process. Names, counts and times: no row and no secret has a way in here. */
export function createMetrics({ info, countChanges, freeBytes, proven }: MetricsOptions): Metrics {
  const registers = [new Registry()]
  const [registry] = registers as [Registry]
  collectDefaultMetrics({ register: registry })
  const make = instruments(registers)
  make.info(info)
  make.changes(countChanges)
  make.diskFree(freeBytes)
  for (const labels of possibleExports()) make.exports.inc(labels, 0)
  const provenAt = new Map<string, number>()
  // Kept parts of an older read may be published after those of a later one.
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
    took({ resource, pages, records }) {
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

/** A counter that is first seen as 1 has not grown for Prometheus: so each begins at 0. */
function possibleExports() {
  return Object.keys(allResources).flatMap((resource) =>
    destinationNames.flatMap((destination) =>
      (['proven', 'unproven'] as const).map((verdict) => ({ resource, destination, verdict })),
    ),
  )
}

/** Counted anew for a scrape, unless that would take more than its share of the time. */
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
      const counts = new Map((await count()).map(({ state, number }) => [state, number]))
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
        named('info', 'Always 1; whom this worker serves, and its version.', ...Object.keys(labels)),
      ).set({ ...labels }, 1),
    changes: (count: MetricsOptions['countChanges']) => {
      const help = 'Changes of all runs in the ledger of the data folder, by where they stand.'
      return createChangesGauge(named('changes', help), count)
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
        'Tries of requests by the status of the answer; `none` where no whole one came.',
        'operation',
        'status',
      ),
    ),
    refused: new Gauge(
      named('refused', '1 while the last answer of the service refused the token or the workspace.'),
    ),
    requestSeconds: new Histogram({
      ...named('request_seconds', 'From leaving to the whole answer, or its loss.', 'operation'),
      buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
    }),
    waitSeconds: new Histogram({
      ...named('rate_wait_seconds', 'How long requests stood in the queue of the rate limit.', 'operation'),
      buckets: [0.01, 0.1, 1, 10, 60, 600],
    }),
    pages: new Counter(named('pages_total', 'Responses of lists that reads asked for.', 'resource')),
    records: new Counter(named('records_total', 'Records that reads wrote to their parts.', 'resource')),
    exports: new Counter(
      named('exports_total', 'Publications of a resource, by verdict.', 'resource', 'destination', 'verdict'),
    ),
    publishSeconds: new Histogram({
      ...named('publish_seconds', 'How long publishing took.', 'resource', 'destination'),
      buckets: [0.1, 1, 10, 60, 600, 3600],
    }),
    proven: new Gauge(
      named(
        'last_proven_timestamp_seconds',
        'When the last read began that proved the whole list, or all that changed, and was published.',
        'resource',
        'destination',
      ),
    ),
  }
}
