import type { Command } from 'commander'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { startWorker } from '../../worker/start-worker.ts'
import type { DevServer } from '../dev-server/start-dev-server.ts'
import { localPlace, lostServerGraceMs, onServer, startLocalServer } from '../session/local-session.ts'
import { processSettings } from '../session/settings.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import { addExamples } from './options.ts'
import type { Terminal } from '../terminal/terminal.ts'

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const settings = processSettings()
    const server = await startLocalServer({ settings, terminal })
    try {
      const start = () => startWorker({ settings, temporal: localPlace(server), standing: true })
      const worker = await onServer(server, start)
      using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
      terminal.identity(settings.billing)
      terminal.note(`Temporal UI: ${server.uiUrl}`)
      const { monitorUrl } = worker
      if (monitorUrl !== undefined) terminal.note(`Metrics: ${monitorUrl}/metrics, health: /healthz, /readyz`)
      terminal.note(`Temporal: ${server.address}, task queue ${settings.taskQueue}`)
      terminal.note(
        'Other commands in this folder connect to both. Ctrl-C stops them; runs resume at the next start.',
      )
      await Promise.race([worker.ended, lost(server)])
    } finally {
      await server.stop()
    }
  })
  addExamples(command, 'look', {
    up: 'keep it running in a terminal of its own; other commands connect to it',
  })
}

/** Rejects when the server is gone for good, after a moment for the requests in flight. */
async function lost({ lost: signal }: DevServer): Promise<never> {
  await once(signal, 'abort')
  await sleep(lostServerGraceMs)
  throw signal.reason
}
