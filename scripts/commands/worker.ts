import type { Command } from 'commander'
import { startWorker } from '../../worker/start-worker.ts'
import { temporalPlace } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import { addExamples } from './options.ts'

/** Prints everything through its log, from the first line, so that a log collector can parse all of it. */
export function configure(command: Command): void {
  command.action(async () => {
    const settings = processSettings()
    const temporal = { ...temporalPlace(settings), awaitServer: true }
    const worker = await startWorker({ settings, temporal, standing: true })
    using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
    const { logger, identity, healthUrl } = worker
    const { workspace, mode } = identity
    const metrics = healthUrl !== undefined && { metrics: `${healthUrl}/metrics` }
    logger.info('listening', { workspace, mode, taskQueue: settings.taskQueue, ...metrics })
    await worker.ended
  })
  addExamples(command, 'inspect', { worker: 'with TEMPORAL_ADDRESS set to your Temporal server' })
}
