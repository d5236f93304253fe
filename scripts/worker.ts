import type { Command } from 'commander'
import { startWorker } from '../worker/start-worker.ts'
import { temporalPlace } from './session.ts'
import { processSettings } from './settings.ts'
import { onInterrupt } from './terminal/interrupt.ts'
import type { Terminal } from './terminal/terminal.ts'

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const settings = processSettings()
    const worker = await startWorker({ settings, temporal: temporalPlace(settings), logLevel: 'INFO' })
    terminal.identity(settings.billing)
    terminal.note(`Listening on ${settings.taskQueue}; Ctrl-C lets what is in flight end.`)
    using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
    await worker.ended
  })
}
