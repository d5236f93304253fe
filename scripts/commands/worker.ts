import type { Command } from 'commander'
import { readSettings, type Settings } from '../../worker/settings/settings.ts'
import { type RunningWorker, startWorker } from '../../worker/start-worker.ts'
import { createLogger } from '../../worker/telemetry/log.ts'
import { addExamples, callersPath, processSettings } from './options.ts'
import { temporalPlace } from '../session/temporal.ts'
import { exitCodes, RefusedError, toFailure } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/terminal.ts'

/** Prints everything through its log, from the first line, so that a log collector can parse all of it. */
export function configure(command: Command): void {
  command
    .argument('[files...]', 'a settings file for each workspace (default: .env)')
    .action(async (files: string[]) => {
      if (files.length > 0) return await serveWorkspaces(files.map(callersPath))
      const settings = processSettings()
      const worker = await start(settings)
      using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
      worker.logger.info('listening', describe(worker, settings))
      await worker.ended
    })
  addExamples(command, 'inspect', {
    worker: 'with TEMPORAL_ADDRESS set to your Temporal server',
    'worker acc_1.env acc_2.env': 'two workspaces in one process',
  })
}

const start = (settings: Settings): Promise<RunningWorker> =>
  startWorker({ settings, temporal: { ...temporalPlace(settings), awaitServer: true }, standing: true })

/** What a worker logs when it is ready. */
function describe({ identity, healthUrl }: RunningWorker, { taskQueue }: Settings) {
  const { workspace, mode } = identity
  return { workspace, mode, taskQueue, ...(healthUrl !== undefined && { metrics: `${healthUrl}/metrics` }) }
}

/**
 * Runs one worker for each settings file (absolute paths). The workspaces share nothing but the process: whatever is
 * wrong with one file or worker is logged and ends that one alone.
 *
 * @throws {RefusedError} none could be started
 */
async function serveWorkspaces(files: readonly string[]): Promise<void> {
  const logger = createLogger({ level: 'info' })
  const workspaces: Workspace[] = []
  const workers: RunningWorker[] = []
  let isStopping = false
  const stop = async () => {
    isStopping = true
    await Promise.allSettled(workers.map((worker) => worker.stop()))
  }
  /** Whether the worker started, and ended because it was stopped. */
  const serve = async (file: string): Promise<boolean> => {
    try {
      const settings = readSettings({ env: process.env, cwd: process.cwd(), envFile: file })
      refuseShared({ file, settings }, workspaces)
      workspaces.push({ file, settings })
      const worker = await start(settings)
      workers.push(worker)
      if (isStopping) await worker.stop()
      logger.info('listening', { file, ...describe(worker, settings) })
      await worker.ended
      return true
    } catch (error) {
      const { message, hint } = toFailure(error)
      logger.error('this workspace has no worker', { file, error: [message, hint].filter(Boolean).join(' ') })
      return false
    }
  }
  using _interrupt = onInterrupt({ first: stop, second: () => process.exit(1) })
  const ended = await Promise.all(files.map(serve))
  if (workers.length === 0)
    throw new RefusedError('No workspace has a worker: the lines above say why, file by file.')
  if (ended.includes(false)) process.exitCode = exitCodes.failed
}

interface Workspace {
  file: string
  settings: Settings
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
