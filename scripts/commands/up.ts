import type { Command } from 'commander'
import { startWorker } from '../../worker/start-worker.ts'
import { localPlace, startLocalServer } from '../session/local-session.ts'
import { processSettings } from '../session/settings.ts'
import { noteMonitor } from './worker.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const settings = processSettings()
    const server = await startLocalServer({ settings, terminal })
    try {
      const worker = await startWorker({ settings, temporal: localPlace(server), standing: true })
      using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
      terminal.identity(settings.billing)
      terminal.note(`Temporal UI: ${server.uiUrl}`)
      noteMonitor({ worker, terminal })
      terminal.note(`Temporal: ${server.address}, task queue ${settings.taskQueue}`)
      terminal.note(
        'Other commands in this folder find both. Ctrl-C ends them; runs wait and go on at the next start.',
      )
      await worker.ended
    } finally {
      await server.stop()
    }
  })
}
