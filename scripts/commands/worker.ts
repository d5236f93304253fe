import type { Command } from 'commander'
import { startWorker } from '../../worker/start-worker.ts'
import { addExamples, processSettings } from './options.ts'
import { temporalPlace } from '../session/temporal.ts'
import { onInterrupt } from '../terminal/terminal.ts'

/** Prints everything through its log, from the first line, so that a log collector can parse all of it. */
export function configure(command: Command): void {
  command.action(async () => {
    const settings = processSettings()
    const temporal = { ...temporalPlace(settings), awaitServer: true }
    const worker = await startWorker({ settings, temporal, standing: true })
    using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
    const { identity, healthUrl } = worker
    worker.logger.info('listening', {
      workspace: identity.workspace,
      mode: identity.mode,
      taskQueue: settings.taskQueue,
      ...(healthUrl !== undefined && { metrics: `${healthUrl}/metrics` }),
    })
    await worker.ended
  })
  addExamples(command, 'inspect', { worker: 'with TEMPORAL_ADDRESS set to your Temporal server' })
}
