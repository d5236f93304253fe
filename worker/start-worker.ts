import { type Logger, NativeConnection, type NativeConnectionOptions, Worker } from '@temporalio/worker'
import type { Identity } from '../core/runs/identity.ts'
import { acquireLock } from '../core/state/data-folder-lock.ts'
import { LockLostError } from '../core/state/errors.ts'
import { openState, type State } from '../core/state/open.ts'
import { findServerProblems } from '../core/state/postgres/server-problems.ts'
import { keepBeating, prepareDataFolder, watchLock } from './data-folder.ts'
import { type Files, joinState } from './files.ts'
import { toWorkerIdentity, version } from './identity.ts'
import { type Settings, tellReadableSecrets } from './settings/settings.ts'
import { followApiKey } from './settings/rotating.ts'
import { serveHealth } from './telemetry/health.ts'
import { createLogger, installRuntime } from './telemetry/log.ts'
import { observeWorker, type Telemetry } from './telemetry/metrics.ts'
import { createActivities } from '../activities/index.ts'
import type { Heartbeats } from '../core/notifications/opened.ts'
import { toDataConverter } from './codec/payload-codec.ts'
import { createDestinations } from './destinations.ts'
import { createService, createTokenWait } from './service.ts'
import { findSearchAttributes, timesOf } from './temporal-queries.ts'
import { loadWorkflowBundle } from './workflow-bundle.ts'
import { setTimeout as wait } from 'node:timers/promises'
import { isLoopback } from '../core/billing/connections.ts'

export interface RunningWorker {
  readonly identity: Identity
  readonly logger: Logger
  /** The address of metrics and health, if they are served. */
  readonly healthUrl: string | undefined
  /** Drains what is in flight (requests, checkpoints), then stops. */
  stop(): Promise<void>
  /**
   * Resolves when the worker has stopped, by itself or through `stop`.
   * @throws {LockLostError} the folder's lock file was removed, which stops the worker within a second
   */
  readonly ended: Promise<void>
}

export interface WorkerOptions {
  settings: Settings
  temporal: {
    connectionOptions: NativeConnectionOptions
    namespace: string
    /** Address of the Temporal UI, used unless CONNECTOR_UI_URL is set. */
    uiUrl?: string | undefined
    /** Retries until the server answers; otherwise an unreachable server is an error. */
    awaitServer?: boolean
  }
  /**
   * Which runs may send changes through this worker; default: all. A worker that a command starts for itself
   * must not resume another command's unfinished runs.
   */
  mayWrite?: (workflowId: string) => boolean
  /**
   * A standalone worker, not a command's: it logs and serves metrics and health as configured. A command's worker
   * prints only the SDK's errors, as text.
   */
  standing?: boolean
}

/**
 * Starts the worker process of a data folder: takes the folder's lock, opens the state, wires the activities
 * and polls.
 * @throws {DataFolderError} the folder cannot be written
 * @throws {FolderLockedError} another process holds it
 * @throws {OtherBucketError | OtherStateError} see `joinState`
 * @throws {MetricsAddressError} its metrics cannot be served
 * @throws {NoRootCertificatesError}
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { settings, temporal, mayWrite = () => true, standing = false } = options
  const { dataDir, taskQueue, metricsAddress, payloadKeys, temporalApiKeyFile } = settings
  const { connectionOptions, namespace } = temporal
  await prepareDataFolder(dataDir)
  await using opened = new AsyncDisposableStack()
  const level = standing ? settings.logLevel : 'error'
  const logger = createLogger({ level, ...(!standing && { format: 'text' }) })
  const readable = tellReadableSecrets(settings)
  if (readable !== undefined) logger.warn(readable)
  const lock = acquireLock({ folder: dataDir, role: 'worker' })
  opened.defer(() => lock.release())
  const state = await openWorkerState({ settings, logger, isHeld: () => lock.isHeld() })
  opened.defer(() => state.close())
  const { membership, ...files } = await joinState({ settings, state })
  opened.use(membership)
  const { workspace, baseUrl, testMode } = settings.billing
  const identity = { workspace, baseUrl, mode: testMode ? 'test' : 'live', store: state.storeId } as const
  const servesHealth = standing && metricsAddress !== undefined
  const telemetry = await observeWorker({ served: servesHealth, dataDir, identity, state, logger })
  const sdkMetrics = await installRuntime({ logger, level, metrics: servesHealth })
  let started: { worker: Worker; connection: NativeConnection } | undefined
  const health = servesHealth
    ? await serveHealth(metricsAddress, {
        metrics: async () => `${await telemetry.text()}\n${(await sdkMetrics?.()) ?? ''}`,
        dataDir,
        lock,
        shared: state.shared,
        poller: { namespace, taskQueue, identity: toWorkerIdentity(identity, payloadKeys) },
        started: () => started,
      })
    : undefined
  opened.use(health)
  const connect = temporal.awaitServer ? connectWithRetries : connectTemporal
  const connection = await connect(connectionOptions, logger)
  opened.defer(() => connection.close())
  if (temporalApiKeyFile !== undefined && connectionOptions.apiKey !== undefined)
    opened.use(followApiKey({ file: temporalApiKeyFile, connection, logger }))
  const worker = { settings, temporal, standing, mayWrite, ...files, state, identity, telemetry }
  const workers = await createWorkers({ ...worker, connection, logger })
  started = { worker: workers[0], connection }
  const resources = opened.move()
  const run = async () => {
    await using _resources = resources
    using watch = watchLock({ lock, onLost: () => shutDown(workers) })
    using _beating = keepBeating(membership)
    await runAll(workers)
    if (watch.isLost) throw new LockLostError({ folder: dataDir })
  }
  const ended = run()
  return {
    identity,
    logger,
    healthUrl: health?.url,
    ended,
    async stop() {
      shutDown(workers)
      await ended
    },
  }
}

/** Opens the state and logs what `check` says of its server, too. */
async function openWorkerState(options: {
  settings: Settings
  logger: Logger
  isHeld: () => boolean
}): Promise<State> {
  const { settings, logger, isHeld } = options
  const onClockJump = (ms: number) =>
    logger.warn('The clock of the state jumped; times follow it slowly', { ms: Math.round(ms) })
  const state = await openState({ ...settings.state, isHeld, onClockJump })
  const problems = state.shared === undefined ? [] : await findServerProblems(state.shared)
  if (problems.length > 0) logger.warn(problems.join(' '))
  return state
}

function shutDown(workers: readonly Worker[]): void {
  for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
}

/** Runs until all have ended; if one fails, the others are shut down. */
async function runAll(workers: readonly Worker[]): Promise<void> {
  const runs = workers.map((worker) =>
    worker.run().catch((error: unknown) => {
      shutDown(workers)
      throw error
    }),
  )
  for (const run of await Promise.allSettled(runs)) if (run.status === 'rejected') throw run.reason
}

/** Drain margin in ms beyond BILLING_TIMEOUT_SECONDS, the longest that a request in flight may take. */
const drainMarginMs = 5_000

interface Parts extends Required<WorkerOptions>, Omit<Files, 'membership'> {
  connection: NativeConnection
  state: State
  identity: Identity
  telemetry: Telemetry
  logger: Logger
}

/**
 * Ranges of a long list have a task queue of their own, from which each of several workers takes a few at a time:
 * otherwise one worker could take most of them and leave the others idle. A worker alone takes as many as it may have
 * requests in flight, because each range has one.
 */
const rangesOfEach = 4

/** The worker of the task queue, and that of its ranges. */
async function createWorkers(parts: Parts): Promise<[Worker, Worker]> {
  const { settings, temporal, standing, connection, state, identity, telemetry, logger } = parts
  const { shared, files, mayWrite } = parts
  const { namespace } = temporal
  const { concurrency, requestsPerSecond, timeoutSeconds, token } = settings.billing
  const heartbeats = heartbeatsAt(temporal.connectionOptions.address)
  const rangeQueue = `${settings.taskQueue}-ranges`
  const encrypts = settings.payloadKeys.length > 0
  const { dataDir, outDirs, recordsPerRange, readLagMs, channels } = settings
  const activities = createActivities({
    state,
    identity,
    dataDir,
    shared,
    files,
    outDirs,
    concurrency,
    requestsPerSecond,
    recordsPerRange,
    readLagMs,
    channels,
    mayWrite,
    billing: createService(settings, { onRequest: telemetry.onRequest, shares: state.rateShares }),
    observer: telemetry.observer,
    // A command reports a rejected token at once.
    awaitToken: standing ? createTokenWait({ token, logger }) : undefined,
    scheduleTimes: timesOf,
    settleMs: settings.settleSeconds * 1000,
    hashKey: settings.hashKey ?? '',
    versions: { connector: version },
    destinations: createDestinations(settings),
    searchAttributes: async () => (await findSearchAttributes({ connection, namespace })) ?? [],
    heartbeats,
    rangeQueue,
    encrypts,
    ui: { url: settings.uiUrl ?? temporal.uiUrl, namespace },
  })
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
    shutdownForceTime: timeoutSeconds * 1000 + drainMarginMs,
  } as const
  const worker = await Worker.create({
    ...common,
    taskQueue: settings.taskQueue,
    workflowBundle: await loadWorkflowBundle({ encodesFailures: encrypts }),
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
    maxConcurrentActivityTaskExecutions: shared.isShared ? Math.min(concurrency, rangesOfEach) : concurrency,
  })
  return [worker, ranges]
}

/** The SDK's native error if the system has no root certificates. */
const withoutRoots = /NativeCertsNotFound/

/** The system has no root certificates; nothing was started. */
export class NoRootCertificatesError extends Error {
  override readonly name = 'NoRootCertificatesError'
  readonly exitCode = 2
  readonly hint =
    'Install them (`apt-get install ca-certificates`), or set SSL_CERT_FILE to a file with them. Node has its own; Temporal uses those of the system.'
  constructor(options: ErrorOptions) {
    super(
      'This system has no root certificates, so the certificate of the Temporal server cannot be verified.',
      options,
    )
  }
}

/** @throws {NoRootCertificatesError} or the SDK's error if Temporal does not answer */
export async function connectTemporal(options: NativeConnectionOptions): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect(options)
  } catch (error) {
    throw withoutRoots.test(String(error)) ? new NoRootCertificatesError({ cause: error }) : error
  }
}

const firstWaitMs = 1_000
const longestWaitMs = 30_000

/**
 * Retries until Temporal answers, for a worker that may start first. Logs each failure with the delay before
 * the next attempt, which doubles from 1 s to 30 s.
 *
 * @throws {NoRootCertificatesError}
 */
async function connectWithRetries(
  options: NativeConnectionOptions,
  logger: Logger,
): Promise<NativeConnection> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    try {
      return await connectTemporal(options)
    } catch (error) {
      if (error instanceof NoRootCertificatesError) throw error
      const address = options.address ?? 'localhost:7233'
      logger.warn(`Temporal does not answer at ${address}`, { error, retryInSeconds: waitMs / 1000 })
      await wait(waitMs)
    }
  }
}

/**
 * The heartbeat intervals for the Temporal server at `address`: short if it is on this machine or in a
 * container beside it.
 */
export function heartbeatsAt(address = 'localhost:7233'): Heartbeats {
  const url = `http://${address}`
  if (!URL.canParse(url)) return 'remote'
  return isLoopback(url) || !/[.:]/.test(new URL(url).hostname) ? 'local' : 'remote'
}
