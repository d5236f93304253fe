import type { ExportInput, FetchInput } from '../../core/exports/input.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { stopOnInterrupt } from './follow-export.ts'
import { runToReport } from './follow-to-end.ts'
import type { Session } from '../session/session.ts'
import { hashInput } from '../input-hash.ts'
import { inOrder, startExport, startFetch, type StartedExport } from './start-export.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Call {
  settings: Settings
  terminal: Terminal
  local: boolean
  detach: boolean
}

/** Starts an export, or goes on with the unfinished one of the same input, and tells how it ends. */
export const runExport = ({ input, ...call }: Call & { input: ExportInput }): Promise<void> =>
  runStarted({ ...call, input }, (place, identity) =>
    startExport({ ...place, input: { ...input, identity } }),
  )

/** Starts a fetch of documents, or goes on with the unfinished one of the same input, and tells how it ends. */
export const runFetch = ({ input, ...call }: Call & { input: FetchInput }): Promise<void> =>
  runStarted({ ...call, input }, (place, identity) => startFetch({ ...place, input: { ...input, identity } }))

async function runStarted(
  { settings, terminal, local, detach, input }: Call & { input: ExportInput | FetchInput },
  begin: (
    place: { client: Session['client']; taskQueue: string; dataDir: string },
    identity: Session['identity'],
  ) => Promise<StartedExport>,
): Promise<void> {
  await runToReport({
    settings,
    terminal,
    local,
    detach,
    needsService: true,
    key: keyOf({ settings, input }),
    async start({ client, identity }) {
      const { handle, attached } = await begin({ client, ...settings }, identity)
      terminal.note(`${attached ? 'Goes on with the unfinished run' : 'Run'} ${handle.workflowId}`)
      return handle
    },
    onInterrupt: ({ handle, letGo }) => stopOnInterrupt({ handle, terminal, letGo }),
  })
}

const keyOf = ({ settings, input }: { settings: Settings; input: ExportInput | FetchInput }): string => {
  const { workspace, testMode } = settings.billing
  return hashInput({ workspace, testMode, input: inOrder(input) })
}
