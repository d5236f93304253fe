import type { Logger, NativeConnection, NativeConnectionOptions, Worker } from '@temporalio/worker'
import type { Identity } from '../core/runs/identity.ts'
import { acquireLock } from '../core/state/data-folder-lock.ts'
import { LockLostError } from '../core/state/errors.ts'
import { openState, type State } from '../core/state/open.ts'
import { findServerProblems } from '../core/state/postgres/server-problems.ts'
import { connectTemporal, connectWithRetries } from './connect-temporal.ts'
import { createWorkers } from './create-workers.ts'
import { keepBeating, prepareDataFolder, watchLock } from './data-folder.ts'
import { joinState } from './files.ts'
import { toWorkerIdentity } from './identity.ts'
import { tellReadableSecrets } from './settings/checks.ts'
import { followApiKey } from './settings/rotating.ts'
import { toFingerprint, type Settings } from './settings/settings.ts'
import { serveHealth } from './telemetry/health.ts'
import { createLogger, installRuntime } from './telemetry/log.ts'
import { createInstruments } from './telemetry/observe.ts'

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
  const lock = acquireLock({ folder: dataDir, role: 'worker', settings: toFingerprint(settings.fixed) })
  opened.defer(() => lock.release())
  const state = await openWorkerState({ settings, logger, isHeld: () => lock.isHeld() })
  opened.defer(() => state.close())
  const { membership, ...files } = await joinState({ settings, state })
  opened.use(membership)
  const identity = identityOf(settings, state)
  const instruments = await createInstruments({ settings, identity, state, logger })
  const servesHealth = standing && metricsAddress !== undefined
  const sdkMetrics = await installRuntime({
    logger,
    level,
    metrics: servesHealth,
  })
  let started: { worker: Worker; connection: NativeConnection } | undefined
  const health = servesHealth
    ? await serveHealth(metricsAddress, {
        metrics: async () => `${await instruments.metrics.text()}\n${(await sdkMetrics?.()) ?? ''}`,
        dataDir,
        lock,
        shared: state.shared,
        service: instruments.health,
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
  const workers = await createWorkers({
    settings,
    ...temporal,
    standing,
    mayWrite,
    ...files,
    state,
    identity,
    instruments,
    connection,
    logger,
  })
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
    logger.warn("PostgreSQL's clock jumped; times follow it slowly", { ms: Math.round(ms) })
  const state = await openState({ ...settings.state, isHeld, onClockJump })
  const problems = state.shared === undefined ? [] : await findServerProblems(state.shared)
  if (problems.length > 0) logger.warn(problems.join(' '))
  return state
}

const identityOf = ({ billing }: Settings, { storeId }: State): Identity => ({
  workspace: billing.workspace,
  baseUrl: billing.baseUrl,
  mode: billing.testMode ? 'test' : 'live',
  store: storeId,
})

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
