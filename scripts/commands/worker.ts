import type { Command } from 'commander'
import { startWorker } from '../../worker/start-worker.ts'
import { temporalPlace } from '../session/temporal-place.ts'
import { processSettings } from '../session/settings.ts'
import { describe, startWorkspaces } from '../session/start-workspaces.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import { addExamples, callersPath } from './options.ts'

/** Prints everything through its log, from the first line, so that a log collector can parse all of it. */
export function configure(command: Command): void {
  command
    .argument('[files...]', 'a settings file for each workspace (default: .env)')
    .action(async (files: string[]) => {
      if (files.length > 0) return await serveWorkspaces(files.map(callersPath))
      const settings = processSettings()
      const temporal = { ...temporalPlace(settings), awaitServer: true }
      const worker = await startWorker({ settings, temporal, standing: true })
      using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
      worker.logger.info('listening', describe(worker, settings))
      await worker.ended
    })
  addExamples(command, 'inspect', {
    worker: 'with TEMPORAL_ADDRESS set to your Temporal server',
    'worker acc_1.env acc_2.env': 'two workspaces in one process',
  })
}

async function serveWorkspaces(files: readonly string[]): Promise<void> {
  const workspaces = await startWorkspaces(files)
  using _interrupt = onInterrupt({ first: () => workspaces.stop(), second: () => process.exit(1) })
  if (!(await workspaces.ended)) process.exitCode = exitCodes.failed
}
