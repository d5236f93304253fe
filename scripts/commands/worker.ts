import type { Command } from 'commander'
import { startWorker, type RunningWorker } from '../../worker/start-worker.ts'
import { temporalPlace } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const settings = processSettings()
    const worker = await startWorker({ settings, temporal: temporalPlace(settings), standing: true })
    using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
    terminal.identity(settings.billing)
    noteMonitor({ worker, terminal })
    terminal.note(`Listening on ${settings.taskQueue}; Ctrl-C lets what is in flight end.`)
    await worker.ended
  })
}

export function noteMonitor({ worker, terminal }: { worker: RunningWorker; terminal: Terminal }): void {
  if (worker.monitorUrl !== undefined)
    terminal.note(`Metrics: ${worker.monitorUrl}/metrics, health: /healthz, /readyz`)
}
