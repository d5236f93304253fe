import { Worker, type Logger, type NativeConnection, type NativeConnectionOptions } from '@temporalio/worker'
import { createRequire } from 'node:module'
import { createActivities } from '../activities/index.ts'
import { listResources } from '../core/billing/resources/lists.ts'
import type { Identity } from '../core/runs/identity.ts'
import { LockLostError } from '../core/state/errors.ts'
import { PlaceTakenError } from '../core/state/place-errors.ts'
import { findWorkers, joinStore, workerName } from '../core/state/postgres/membership.ts'
import { openState, type State } from '../core/state/open.ts'
import { acquireLock, type WorkerLock } from '../core/state/data-folder-lock.ts'
import { freeBytes, leastFreeBytes } from '../core/storage/free-space.ts'
import { followApiKey } from './api-key.ts'
import { toDataConverter } from './codec/data-converter.ts'
import { connectTemporal, connectWithRetries } from './connect-temporal.ts'
import { prepareDataFolder } from './data-folder.ts'
import { createDestinations } from './destinations.ts'
import { openFiles } from './files.ts'
import { heartbeatsAt } from './heartbeats.ts'
import { findLastProven } from './telemetry/last-proven.ts'
import { createLogger } from './telemetry/log.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { startHealthServer, type HealthServer } from './telemetry/health-server.ts'
import { activityTelemetry, requestTelemetry } from './telemetry/observe.ts'
import { checkPolling } from './telemetry/polling.ts'
import { refuseReadableSecrets } from './settings/permissions.ts'
import { toReadiness } from './telemetry/readiness.ts'
import { installRuntime, type SdkMetrics } from './telemetry/runtime.ts'
import { createServiceHealth } from './telemetry/service-health.ts'
import { findSearchAttributes } from './search-attributes.ts'
import { createService } from './service.ts'
import { timesOf } from './schedule-times.ts'
import type { Settings } from './settings/settings.ts'
import { createTokenWait } from './await-token.ts'
import { toDeployment } from './deployment-version.ts'
import { watchLock, watchPlace } from './watch-lock.ts'
import { loadWorkflowBundle } from './workflow-bundle.ts'
import { toWorkerIdentity } from './worker-identity.ts'

const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** Drain margin in ms beyond BILLING_TIMEOUT_SECONDS, the longest that a request in flight may take. */
const drainMarginMs = 5_000

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
   * A standalone worker, not a command's: it logs and serves metrics and health as configured, and rejects
   * secrets that other users of the machine can read. A command's worker prints only the SDK's errors.
   */
  standing?: boolean
  /**
   * For tests of several workers on one machine, with the state on PostgreSQL: uses the data folder without its lock.
   */
  sharesFolder?: boolean
}

const noLock: WorkerLock = { isHeld: () => true, release: () => {} }

/**
 * Starts the worker process of a data folder: takes the folder's lock, opens the state, wires the activities
 * and polls.
 * @throws {DataFolderError} the folder cannot be written
 * @throws {FolderLockedError} another process holds it
 * @throws {OtherFolderError} the state on PostgreSQL belongs to another data folder
 * @throws {SecondWorkerError} another worker uses it
 * @throws {MetricsAddressError} its metrics cannot be served
 * @throws {ReadableSecretsError}
 * @throws {NoRootCertificatesError}
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { settings } = options
  if (options.standing) refuseReadableSecrets(settings)
  await prepareDataFolder(settings.dataDir)
  const logger = toLogger(options)
  const lock = options.sharesFolder ? noLock : acquireLock({ folder: settings.dataDir, role: 'worker' })
  await using held = new AsyncDisposableStack()
  held.defer(() => lock.release())
  const onClockJump = (ms: number) =>
    logger.warn("PostgreSQL's clock jumped; times follow it slowly", { ms: Math.round(ms) })
  const state = held.adopt(
    await openState({ ...settings.state, isHeld: () => lock.isHeld(), onClockJump }),
    (resource) => resource.close(),
  )
  const membership =
    state.shared &&
    held.use(
      await joinStore({ store: state.shared, folder: settings.dataDir, sharesFolder: options.sharesFolder }),
    )
  const identity: Identity = {
    workspace: settings.billing.workspace,
    baseUrl: settings.billing.baseUrl,
    mode: settings.billing.testMode ? 'test' : 'live',
    store: state.storeId,
  }
  const instruments = await createInstruments({ settings, identity, state, logger })
  const started: Started = {}
  const healthServer = await openHealthServer({ ...options, lock, identity, instruments, started })
  held.defer(() => healthServer?.close())
  const { level } = settings.log
  const metrics = healthServer !== undefined
  const sdkMetrics = await installRuntime({ logger, level: options.standing ? level : 'error', metrics })
  const { connectionOptions, awaitServer } = options.temporal
  const connecting =
    awaitServer === true
      ? connectWithRetries(connectionOptions, { logger })
      : connectTemporal(connectionOptions)
  const connection = held.adopt(await connecting, (resource) => resource.close())
  if (settings.temporalApiKeyFile !== undefined && connectionOptions.apiKey !== undefined)
    held.use(followApiKey({ file: settings.temporalApiKeyFile, connection, logger }))
  const worker = await createWorker({ ...options, state, identity, instruments, connection, logger })
  Object.assign(started, { worker, connection, sdkMetrics })
  const resources = held.move()
  const run = async () => {
    await using _resources = resources
    using watch = watchLock({ lock, onLost: () => shutDown(worker) })
    using place = watchPlace({ membership, onTaken: () => shutDown(worker) })
    await worker.run()
    if (watch.isLost) throw new LockLostError({ folder: settings.dataDir })
    if (place.isTaken) throw new PlaceTakenError({ place: state.shared?.place ?? settings.dataDir })
  }
  const ended = run()
  return {
    identity,
    logger,
    healthUrl: healthServer?.url,
    ended,
    async stop() {
      shutDown(worker)
      await ended
    },
  }
}

function shutDown(worker: Worker): void {
  if (worker.getState() === 'RUNNING') worker.shutdown()
}

function toLogger({ settings, standing = false }: WorkerOptions): Logger {
  const { level, format } = settings.log
  if (!standing) return createLogger({ level: 'error', format: 'text' })
  return createLogger({ level, format: format ?? (process.stderr.isTTY ? 'text' : 'json') })
}

/** Creates the service client, with metrics and health. */
async function createInstruments(options: {
  settings: Settings
  identity: Identity
  state: State
  logger: Logger
}) {
  const { settings, identity, state, logger } = options
  const { shared } = state
  const { workspace, mode } = identity
  const proven = await findLastProven({ dataDir: settings.dataDir, identity })
  const metrics = createMetrics({
    info: { version, workspace, mode, worker: workerName() },
    countChanges: () => state.ledger.totals(),
    findWorkers: shared && (() => findWorkers(shared)),
    freeBytes: () => freeBytes(settings.dataDir),
    proven,
  })
  const health = createServiceHealth({
    ping: () => billing.list({ resource: listResources.plans, page: 1, pageSize: 1, tries: 1 }),
  })
  const onRequest = requestTelemetry({ metrics, health, logger })
  const billing = createService(settings, { onRequest, permits: state.permits })
  return { billing, metrics, health, observer: activityTelemetry({ metrics, logger }) }
}

type Instruments = Awaited<ReturnType<typeof createInstruments>>

interface Wiring extends WorkerOptions {
  identity: Identity
  instruments: Instruments
}

async function createWorker(
  options: Wiring & { state: State; connection: NativeConnection; logger: Logger },
): Promise<Worker> {
  const { settings, temporal, state, identity, instruments, connection } = options
  const heartbeats = settings.heartbeats ?? heartbeatsAt(temporal.connectionOptions.address)
  return await Worker.create({
    connection,
    namespace: temporal.namespace,
    taskQueue: settings.taskQueue,
    ...toDeployment(settings),
    identity: toWorkerIdentity(identity, settings.payloadKeys),
    workflowBundle: await loadWorkflowBundle({ encodesFailures: settings.payloadKeys.length > 0 }),
    dataConverter: toDataConverter(settings.payloadKeys),
    activities: createActivities({
      billing: instruments.billing,
      observer: instruments.observer,
      awaitToken:
        // A command reports a rejected token at once.
        options.standing === true
          ? createTokenWait({ token: settings.billing.token, logger: options.logger })
          : undefined,
      scheduleTimes: timesOf,
      state,
      identity,
      dataDir: settings.dataDir,
      outDirs: settings.outDirs,
      concurrency: settings.billing.concurrency,
      recordsPerRange: settings.recordsPerRange,
      readLagMs: settings.readLagSeconds * 1000,
      settleMs: settings.settleSeconds * 1000,
      requestsPerSecond: settings.billing.requestsPerSecond,
      mayWrite: options.mayWrite ?? (() => true),
      hashKey: settings.hashKey ?? '',
      versions: { connector: version },
      destinations: createDestinations(settings),
      files: openFiles(settings),
      channels: settings.channels,
      searchAttributes: () => findSearchAttributes({ connection, namespace: temporal.namespace }),
      heartbeats,
      encrypts: settings.payloadKeys.length > 0,
      ui: { url: settings.uiUrl ?? temporal.uiUrl, namespace: temporal.namespace },
    }),
    // Heartbeats tell steps about a pause or stop; by default the SDK sends them only every 4 s.
    maxHeartbeatThrottleInterval: heartbeats === 'remote' ? '10s' : '1s',
    // Each cached workflow uses memory; at most this many run at once.
    maxCachedWorkflows: 50,
    // With the default of 10 s, a run would wait that long for a worker that was killed.
    stickyQueueScheduleToStartTimeout: '1s',
    // Activities see a shutdown at once and end by themselves: a read at its next checkpoint, a sender when
    // its requests in flight are answered. Anything still active after the request deadline would never end.
    shutdownGraceTime: 0,
    shutdownForceTime: settings.billing.timeoutSeconds * 1000 + drainMarginMs,
  })
}

/** Set once started; the health server starts earlier. */
interface Started {
  worker?: Worker
  connection?: NativeConnection
  sdkMetrics?: SdkMetrics | undefined
}

async function openHealthServer(
  options: Wiring & { lock: WorkerLock; started: Started },
): Promise<HealthServer | undefined> {
  const { settings, temporal, standing, identity, instruments, lock, started } = options
  const { metricsAddress: address, taskQueue, dataDir } = settings
  if (standing !== true || address === undefined) return undefined
  const { metrics, health } = instruments
  const worker = toWorkerIdentity(identity, settings.payloadKeys)
  const poller = { namespace: temporal.namespace, taskQueue, identity: worker }
  return await startHealthServer({
    address,
    metrics: async () => `${await metrics.text()}\n${(await started.sdkMetrics?.()) ?? ''}`,
    isAlive: () => !['FAILED', 'STOPPED'].includes(started.worker?.getState() ?? ''),
    readiness: () =>
      toReadiness({
        polling: () => checkPolling({ ...started, ...poller }),
        lock: () => Promise.resolve(toLockCheck({ lock, dataDir })),
        disk: () => toDiskCheck(dataDir),
        service: () => health.check(),
      }),
  })
}

const toLockCheck = ({ lock, dataDir }: { lock: WorkerLock; dataDir: string }) =>
  lock.isHeld()
    ? { ok: true, message: `holds ${dataDir}` }
    : { ok: false, message: `the lock of ${dataDir} was removed or replaced: restart the worker` }

async function toDiskCheck(dataDir: string) {
  const free = await freeBytes(dataDir)
  const message = `${Math.floor(free / 1e6)} MB are free on the disk of ${dataDir}`
  return free < leastFreeBytes
    ? { ok: false, message: `only ${message}: free some space` }
    : { ok: true, message }
}
