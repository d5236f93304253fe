import {
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type NativeConnectionOptions,
} from '@temporalio/worker'
import { createRequire } from 'node:module'
import { createActivities } from '../activities/index.ts'
import type { Identity } from '../state/identity.ts'
import { openState } from '../state/open-state.ts'
import { acquireLock } from '../state/worker-lock.ts'
import { prepareDataFolder } from './data-folder.ts'
import { createDestinations } from './destinations.ts'
import { createService } from './service.ts'
import type { Settings } from './settings.ts'
import { prepareWorkflowBundle } from './workflow-bundle.ts'
import { toWorkerIdentity } from './worker-identity.ts'

const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** A request that has left may take BILLING_TIMEOUT_SECONDS to be answered; a drain waits a little longer. */
const drainMarginMs = 5_000

export interface RunningWorker {
  readonly identity: Identity
  /** Lets what is in flight end (requests, checkpoints), then stops. */
  stop(): Promise<void>
  /** Settles when the worker has stopped, by itself or because it was told to. */
  readonly ended: Promise<void>
}

export interface WorkerOptions {
  settings: Settings
  temporal: {
    connectionOptions: NativeConnectionOptions
    namespace: string
    /** Of the Temporal UI, where it is known without being told (CONNECTOR_UI_URL). */
    uiUrl?: string | undefined
  }
  /**
   * Which runs may send changes to the service through this worker; all of them where it is left out. A worker that
   * a command starts for itself must not wake what another command left unfinished.
   */
  mayWrite?: (workflowId: string) => boolean
  /** The least level that is printed. */
  logLevel?: 'INFO' | 'WARN' | 'ERROR'
}

/**
 * Starts the one worker process of a data folder: takes the folder's lock, opens the state, wires the activities
 * and polls. Throws DataFolderError where the folder takes no files, FolderLockedError where another process holds it.
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { settings } = options
  await prepareDataFolder(settings.dataDir)
  const lock = acquireLock({ folder: settings.dataDir, role: 'worker' })
  try {
    return await startLocked({ ...options, release: () => lock.release() })
  } catch (error) {
    lock.release()
    throw error
  }
}

async function startLocked(options: WorkerOptions & { release: () => void }): Promise<RunningWorker> {
  const { settings, temporal, release } = options
  const state = await openState({ folder: settings.dataDir })
  const identity: Identity = {
    workspace: settings.billing.workspace,
    baseUrl: settings.billing.baseUrl,
    mode: settings.billing.testMode ? 'test' : 'live',
    store: state.storeId,
  }
  installRuntime(options.logLevel ?? 'WARN')
  const [connection, codePath] = await Promise.all([
    NativeConnection.connect(temporal.connectionOptions),
    prepareWorkflowBundle(),
  ])
  const worker = await Worker.create({
    connection,
    namespace: temporal.namespace,
    taskQueue: settings.taskQueue,
    identity: toWorkerIdentity(identity),
    workflowBundle: { codePath },
    activities: createActivities({
      billing: createService(settings),
      state,
      identity,
      dataDir: settings.dataDir,
      outDirs: settings.outDirs,
      concurrency: settings.billing.concurrency,
      readLagMs: settings.readLagSeconds * 1000,
      settleMs: settings.settleSeconds * 1000,
      requestsPerSecond: settings.billing.requestsPerSecond,
      mayWrite: options.mayWrite ?? (() => true),
      hashKey: settings.hashKey ?? '',
      versions: { connector: version },
      destinations: createDestinations(settings),
      receivers: settings.receivers ?? [],
      ui: { url: settings.uiUrl ?? temporal.uiUrl, namespace: temporal.namespace },
    }),
    // Each workflow in the cache holds memory; more than this many are never running at once here.
    maxCachedWorkflows: 50,
    // The default of 10 s is how long a run would wait for a worker that was killed.
    stickyQueueScheduleToStartTimeout: '1s',
    // Activities hear of a shutdown at once and end by themselves: a read at its next checkpoint, a sender when
    // its requests in flight are answered. What has not ended when a request's own deadline is over never will.
    shutdownGraceTime: 0,
    shutdownForceTime: settings.billing.timeoutSeconds * 1000 + drainMarginMs,
  })
  const run = async () => {
    try {
      await worker.run()
    } finally {
      await connection.close()
      await state.close()
      release()
    }
  }
  const ended = run()
  return {
    identity,
    ended,
    async stop() {
      if (worker.getState() === 'RUNNING') worker.shutdown()
      await ended
    },
  }
}

let installed = false

function installRuntime(level: 'INFO' | 'WARN' | 'ERROR'): void {
  if (installed) return
  installed = true
  Runtime.install({
    logger: new DefaultLogger(level),
    // Else the SDK's native part would write to stdout, where only a command's result belongs.
    telemetryOptions: { logging: { forward: {}, filter: { core: level, other: level } } },
    // The command line decides what Ctrl-C and SIGTERM mean; the runtime must not do it a second time.
    shutdownSignals: [],
  })
}
