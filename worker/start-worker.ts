import type { Logger, NativeConnection, NativeConnectionOptions, Worker } from '@temporalio/worker'
import { rm } from 'node:fs/promises'
import { listResources } from '../core/billing/resources/lists.ts'
import type { Identity } from '../core/runs/identity.ts'
import { stepFolders } from '../core/runs/step-folder.ts'
import { LockLostError } from '../core/state/errors.ts'
import { findWorkers, workerName } from '../core/state/postgres/membership.ts'
import { findServerProblems } from '../core/state/postgres/server-problems.ts'
import { openState, type SharedStore, type State } from '../core/state/open.ts'
import { acquireLock, type WorkerLock } from '../core/state/data-folder-lock.ts'
import { freeBytes } from '../core/storage/system-errors.ts'
import { joinState } from './join-state.ts'
import { followApiKey } from './api-key.ts'
import { connectTemporal, connectWithRetries } from './connect-temporal.ts'
import { createWorkers } from './create-workers.ts'
import { prepareDataFolder } from './data-folder.ts'
import { findLastProven } from './telemetry/last-proven.ts'
import { createLogger } from './telemetry/log.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { startHealthServer, type HealthServer } from './telemetry/health-server.ts'
import { activityTelemetry, requestTelemetry } from './telemetry/observe.ts'
import { diskCheck, lockCheck, stateCheck } from './telemetry/own-checks.ts'
import { version } from './version.ts'
import { checkPolling } from './telemetry/polling.ts'
import { toFingerprint } from './settings/fingerprint.ts'
import { refuseReadableSecrets } from './settings/permissions.ts'
import { toReadiness } from './telemetry/readiness.ts'
import { installRuntime, type SdkMetrics } from './telemetry/runtime.ts'
import { createServiceHealth } from './telemetry/service-health.ts'
import { createService } from './service.ts'
import type { Settings } from './settings/settings.ts'
import { watchLock, keepBeating } from './watch-lock.ts'
import { toWorkerIdentity } from './worker-identity.ts'

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
}

/**
 * Starts the worker process of a data folder: takes the folder's lock, opens the state, wires the activities
 * and polls.
 * @throws {DataFolderError} the folder cannot be written
 * @throws {FolderLockedError} another process holds it
 * @throws {OtherBucketError | OtherStateError} see `joinState`
 * @throws {MetricsAddressError} its metrics cannot be served
 * @throws {ReadableSecretsError}
 * @throws {NoRootCertificatesError}
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { settings } = options
  if (options.standing) refuseReadableSecrets(settings)
  await prepareDataFolder(settings.dataDir)
  const logger = toLogger(options)
  const note = { folder: settings.dataDir, role: 'worker', settings: toFingerprint(settings.fixed) }
  const lock = acquireLock(note)
  await using held = new AsyncDisposableStack()
  held.defer(() => lock.release())
  await rm(stepFolders(settings.dataDir), { recursive: true, force: true })
  const onClockJump = (ms: number) =>
    logger.warn("PostgreSQL's clock jumped; times follow it slowly", { ms: Math.round(ms) })
  const state = held.adopt(
    await openState({ ...settings.state, isHeld: () => lock.isHeld(), onClockJump }),
    (resource) => resource.close(),
  )
  if (state.shared !== undefined) await warnOfServer(state.shared, logger)
  const joined = await joinState({ settings, state })
  const membership = held.use(joined.membership)
  const identity: Identity = {
    workspace: settings.billing.workspace,
    baseUrl: settings.billing.baseUrl,
    mode: settings.billing.testMode ? 'test' : 'live',
    store: state.storeId,
  }
  const instruments = await createInstruments({ settings, identity, state, logger, ...joined })
  const started: Started = {}
  const { shared } = state
  const healthServer = await openHealthServer({ ...options, lock, shared, identity, instruments, started })
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
  const workers = await createWorkers({
    settings,
    ...options.temporal,
    isStandalone: options.standing === true,
    mayWrite: options.mayWrite,
    ...joined,
    state,
    identity,
    instruments,
    connection,
    logger,
  })
  Object.assign(started, { worker: workers[0], connection, sdkMetrics })
  const resources = held.move()
  const run = async () => {
    await using _resources = resources
    using watch = watchLock({ lock, onLost: () => shutDown(workers) })
    using _beating = keepBeating(membership)
    await runAll(workers)
    if (watch.isLost) throw new LockLostError({ folder: settings.dataDir })
  }
  const ended = run()
  return {
    identity,
    logger,
    healthUrl: healthServer?.url,
    ended,
    async stop() {
      shutDown(workers)
      await ended
    },
  }
}

/** What `check` says of the server, too. */
async function warnOfServer(store: SharedStore, logger: Logger): Promise<void> {
  const problems = await findServerProblems(store)
  if (problems.length > 0) logger.warn(problems.join(' '))
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
  const proven = await findLastProven(options)
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
  const billing = createService(settings, { onRequest, shares: state.rateShares })
  return { billing, metrics, health, observer: activityTelemetry({ metrics, logger }) }
}

type Instruments = Awaited<ReturnType<typeof createInstruments>>

interface Wiring extends WorkerOptions {
  identity: Identity
  instruments: Instruments
}

/** Set once started; the health server starts earlier. */
interface Started {
  worker?: Worker
  connection?: NativeConnection
  sdkMetrics?: SdkMetrics | undefined
}

async function openHealthServer(
  options: Wiring & { lock: WorkerLock; shared: SharedStore | undefined; started: Started },
): Promise<HealthServer | undefined> {
  const { settings, temporal, standing, identity, instruments, lock, shared, started } = options
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
        lock: () => Promise.resolve(lockCheck({ lock, dataDir })),
        disk: () => diskCheck(dataDir),
        ...(shared && { state: () => stateCheck(shared) }),
        service: () => health.check(),
      }),
  })
}
