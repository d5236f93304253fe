import { createLogger } from '../../worker/telemetry/log.ts'
import { readSettings, type Settings } from '../../worker/settings/settings.ts'
import { type RunningWorker, startWorker } from '../../worker/start-worker.ts'
import { RefusedError, toFailure } from '../terminal/failures.ts'
import { temporalPlace } from './temporal-place.ts'

/** The workers of several workspaces in one process. */
export interface Workspaces {
  stop(): Promise<void>
  /** Resolves when all have ended: false if one of them failed. */
  ended: Promise<boolean>
}

interface Workspace {
  file: string
  settings: Settings
}

/**
 * Starts one worker for each settings file (absolute paths). The workspaces share nothing but the process: whatever is wrong with one
 * file or worker is logged and ends that one alone.
 *
 * @throws {RefusedError} none could be started
 */
export async function startWorkspaces(files: readonly string[]): Promise<Workspaces> {
  const logger = createLogger({ level: 'info' })
  const failed = (file: string, error: unknown) => {
    const { message, hint } = toFailure(error)
    logger.error('this workspace has no worker', { file, error: [message, hint].filter(Boolean).join(' ') })
  }
  const workspaces: Workspace[] = []
  for (const file of files) {
    try {
      const settings = readSettings({ env: process.env, cwd: process.cwd(), envFile: file })
      refuseShared({ file, settings }, workspaces)
      workspaces.push({ file, settings })
    } catch (error) {
      failed(file, error)
    }
  }
  const started = await Promise.all(
    workspaces.map(async ({ file, settings }) => {
      try {
        const temporal = { ...temporalPlace(settings), awaitServer: true }
        const worker = await startWorker({ settings, temporal, standing: true })
        logger.info('listening', { file, ...describe(worker, settings) })
        return { file, worker }
      } catch (error) {
        failed(file, error)
        return undefined
      }
    }),
  )
  const running = started.filter((one) => one !== undefined)
  if (running.length === 0)
    throw new RefusedError('No workspace has a worker: the lines above say why, file by file.')
  const ends = running.map(async ({ file, worker }) => {
    try {
      await worker.ended
      return true
    } catch (error) {
      failed(file, error)
      return false
    }
  })
  return {
    async stop() {
      await Promise.allSettled(running.map(({ worker }) => worker.stop()))
    },
    ended: Promise.all(ends).then((ended) => running.length === files.length && !ended.includes(false)),
  }
}

/** What a worker logs when it is ready. */
export function describe({ identity, healthUrl }: RunningWorker, { taskQueue }: Settings) {
  const { workspace, mode } = identity
  return { workspace, mode, taskQueue, ...(healthUrl !== undefined && { metrics: `${healthUrl}/metrics` }) }
}

/** What each workspace has to have for itself, with the variable that sets it. */
const own: readonly [string, (settings: Settings) => string | undefined][] = [
  ['BILLING_WORKSPACE', ({ taskQueue }) => taskQueue],
  ['CONNECTOR_DATA_DIR', ({ dataDir }) => dataDir],
  [
    'CONNECTOR_METRICS_ADDRESS',
    ({ metricsAddress }) => metricsAddress && `${metricsAddress.host}:${metricsAddress.port}`,
  ],
]

function refuseShared({ file, settings }: Workspace, others: readonly Workspace[]): void {
  for (const other of others)
    for (const [variable, valueOf] of own) {
      const value = valueOf(settings)
      if (value === undefined || value !== valueOf(other.settings)) continue
      throw new RefusedError(
        `${file} has the same ${variable} as ${other.file} (${value}). Set it in each file, and not in the environment.`,
      )
    }
}
