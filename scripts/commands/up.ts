import type { Command } from 'commander'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { startWorker } from '../../worker/start-worker.ts'
import type { DevServer } from '../dev-server/start-dev-server.ts'
import { lostServerGraceMs, startLocalServer } from '../session/local-session.ts'
import { addExamples, processSettings } from './options.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { devServerPlace, namesServer } from '../session/temporal.ts'
import { RefusedError } from '../terminal/failures.ts'
import { onInterrupt, type Terminal } from '../terminal/terminal.ts'

/** The UI port of Temporal's own dev server, so that bookmarks and links survive a restart. */
const usualUiPort = 8233

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const settings = processSettings()
    if (namesServer(settings))
      throw new RefusedError(
        'The settings name a Temporal server (TEMPORAL_ADDRESS or TEMPORAL_PROFILE): commands would look there, not at the one that up starts.',
        { hint: `Start \`${connector`worker`}\` beside that server, or remove the setting.` },
      )
    const server = await startLocalServer({ settings, terminal, uiPort: usualUiPort })
    try {
      const temporal = devServerPlace(server, settings.payloadKeys)
      const start = () => startWorker({ settings, temporal, standing: true })
      const worker = await server.during(start)
      using _interrupt = onInterrupt({ first: () => worker.stop(), second: () => process.exit(1) })
      terminal.identity(settings.billing)
      terminal.note(`Temporal UI: ${server.uiUrl}`)
      terminal.note(`Start a recovery: ${toStartForm(server.uiUrl, settings.taskQueue)}`)
      const { healthUrl } = worker
      if (healthUrl !== undefined) terminal.note(`Metrics: ${healthUrl}/metrics, health: /healthz, /readyz`)
      terminal.note(`Temporal: ${server.address}, task queue ${settings.taskQueue}`)
      terminal.note(
        'Other commands in this folder connect to both. Ctrl-C stops them; runs resume at the next start.',
      )
      await Promise.race([worker.ended, lost(server)])
    } finally {
      await server.stop()
    }
  })
  addExamples(command, 'inspect', {
    up: 'keep it running in a terminal of its own; other commands connect to it',
  })
}

/** Rejects when the server has ended, after a grace period for requests in flight. */
async function lost({ lost: signal }: DevServer): Promise<never> {
  await once(signal, 'abort')
  await sleep(lostServerGraceMs)
  throw signal.reason
}

/** A link to the UI's start form, prefilled for a recovery. */
function toStartForm(uiUrl: string, taskQueue: string): string {
  const fields = { workflowId: 'recover-today', taskQueue, workflowType: 'recoverSubscriptions' }
  return `${uiUrl}/namespaces/default/workflows/start-workflow?${new URLSearchParams(fields).toString()}`
}
