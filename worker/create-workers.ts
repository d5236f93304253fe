import { Worker, type Logger, type NativeConnection, type NativeConnectionOptions } from '@temporalio/worker'
import { createActivities } from '../activities/index.ts'
import type { Heartbeats } from '../core/notifications/opened.ts'
import type { Identity } from '../core/runs/identity.ts'
import type { State } from '../core/state/open.ts'
import { toDataConverter } from './codec/payload-codec.ts'
import { heartbeatsAt } from './connect-temporal.ts'
import { createDestinations } from './destinations.ts'
import type { Files } from './files.ts'
import { toWorkerIdentity, version } from './identity.ts'
import { createTokenWait } from './service.ts'
import type { Settings } from './settings/settings.ts'
import type { Instruments } from './telemetry/observe.ts'
import { findSearchAttributes, timesOf } from './temporal-queries.ts'
import { loadWorkflowBundle } from './workflow-bundle.ts'

/** Drain margin in ms beyond BILLING_TIMEOUT_SECONDS, the longest that a request in flight may take. */
const drainMarginMs = 5_000

interface Parts extends Omit<Files, 'membership'> {
  settings: Settings
  connection: NativeConnection
  connectionOptions: NativeConnectionOptions
  namespace: string
  uiUrl?: string | undefined
  state: State
  identity: Identity
  instruments: Instruments
  logger: Logger
  standing: boolean
  mayWrite: (workflowId: string) => boolean
}

/**
 * Ranges of a long list have a task queue of their own, from which each of several workers takes a few at a time:
 * otherwise one worker could take most of them and leave the others idle. A worker alone takes as many as it may have
 * requests in flight, because each range has one.
 */
const rangesOfEach = 4

/** The worker of the task queue, and that of its ranges. */
export async function createWorkers(options: Parts): Promise<[Worker, Worker]> {
  const { settings, namespace, identity, connection } = options
  const { concurrency } = settings.billing
  const heartbeats = heartbeatsAt(options.connectionOptions.address)
  const rangeQueue = `${settings.taskQueue}-ranges`
  const activities = toActivities({ ...options, heartbeats, rangeQueue })
  const common = {
    connection,
    namespace,
    identity: toWorkerIdentity(identity, settings.payloadKeys),
    dataConverter: toDataConverter(settings.payloadKeys),
    // Heartbeats tell steps about a pause or stop; by default the SDK sends them only every 4 s.
    maxHeartbeatThrottleInterval: heartbeats === 'remote' ? '10s' : '1s',
    // Activities see a shutdown at once and end by themselves: a read at its next checkpoint, a sender when
    // its requests in flight are answered. Anything still active after the request deadline would never end.
    shutdownGraceTime: 0,
    shutdownForceTime: settings.billing.timeoutSeconds * 1000 + drainMarginMs,
  } as const
  const worker = await Worker.create({
    ...common,
    taskQueue: settings.taskQueue,
    workflowBundle: await loadWorkflowBundle({ encodesFailures: settings.payloadKeys.length > 0 }),
    activities,
    // Each cached workflow uses memory; at most this many run at once.
    maxCachedWorkflows: 50,
    // With the default of 10 s, a run would wait that long for a worker that was killed.
    stickyQueueScheduleToStartTimeout: '1s',
  })
  const ranges = await Worker.create({
    ...common,
    taskQueue: rangeQueue,
    activities: { readRange: activities.readRange },
    maxConcurrentActivityTaskExecutions: options.shared.isShared
      ? Math.min(concurrency, rangesOfEach)
      : concurrency,
  })
  return [worker, ranges]
}

function toActivities(options: Parts & { heartbeats: Heartbeats; rangeQueue: string }) {
  const { settings, namespace, uiUrl, state, identity, instruments, connection } = options
  return createActivities({
    billing: instruments.billing,
    observer: instruments.observer,
    awaitToken:
      // A command reports a rejected token at once.
      options.standing
        ? createTokenWait({ token: settings.billing.token, logger: options.logger })
        : undefined,
    scheduleTimes: timesOf,
    state,
    identity,
    dataDir: settings.dataDir,
    shared: options.shared,
    outDirs: settings.outDirs,
    concurrency: settings.billing.concurrency,
    recordsPerRange: settings.recordsPerRange,
    readLagMs: settings.readLagSeconds * 1000,
    settleMs: settings.settleSeconds * 1000,
    requestsPerSecond: settings.billing.requestsPerSecond,
    mayWrite: options.mayWrite,
    hashKey: settings.hashKey ?? '',
    versions: { connector: version },
    destinations: createDestinations(settings),
    files: options.files,
    channels: settings.channels,
    searchAttributes: async () => (await findSearchAttributes({ connection, namespace })) ?? [],
    heartbeats: options.heartbeats,
    rangeQueue: options.rangeQueue,
    encrypts: settings.payloadKeys.length > 0,
    ui: { url: settings.uiUrl ?? uiUrl, namespace },
  })
}
