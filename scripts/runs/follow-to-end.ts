import type { ExportReport } from '../../core/exports/report.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { reportExport } from './report-export.ts'
import { type ExportHandle } from './show-export.ts'
import { followExport } from './follow-export.ts'
import { unprintedNote, unprintedReport } from './unprinted-report.ts'
import { openLocalSession } from '../session/local-session.ts'
import { openSession, resumeOrThrow, type Session } from '../session/session.ts'
import { exitCodes } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

interface RunToReport {
  settings: Settings
  terminal: Terminal
  local: boolean
  /** False where the run has no use for the service: then it may be away. */
  needsService: boolean
  detach: boolean
  /** The same for the same command in the same workspace. */
  key: string
  start(session: Session): Promise<ExportHandle>
  /** What Ctrl-C does; `letGo` leaves the run to whoever runs it, and ends the process. */
  onInterrupt(of: { handle: ExportHandle; letGo: () => Promise<void> }): Disposable
}

/**
 * Starts a run, or goes on with an unfinished one, and tells how it ends. Where another command's Temporal server was
 * used and that command ends first, it goes on with a server of its own.
 */
export async function runToReport(options: RunToReport): Promise<void> {
  const { settings, terminal, detach, needsService } = options
  const open = options.local ? openLocalSession : openSession
  const unprinted = unprintedReport({ dataDir: settings.dataDir, key: options.key })
  const start = async (session: Session): Promise<ExportHandle> => {
    const ended = detach ? undefined : await unprinted.find(session.client)
    if (ended === undefined) return await options.start(session)
    terminal.note(unprintedNote(ended))
    return session.client.workflow.getHandle(ended)
  }
  let run: string | undefined
  for (;;) {
    const session = await open({ settings, terminal, needsService })
    const { client, identity } = session
    try {
      terminal.identity({ workspace: identity.workspace, testMode: identity.mode === 'test' })
      const handle: ExportHandle = run === undefined ? await start(session) : client.workflow.getHandle(run)
      run = handle.workflowId
      if (detach) return tellDetached({ run, terminal })
      await unprinted.follows(run)
      const letGo = () => leave({ session, run: handle.workflowId, terminal })
      using _interrupt = options.onInterrupt({ handle, letGo })
      const report: ExportReport = await followExport({ client, handle, terminal, gone: session.gone })
      await reportExport({ report, terminal, settings })
      return await unprinted.printed()
    } catch (error) {
      resumeOrThrow({ session, error, terminal })
    } finally {
      await session.close()
    }
  }
}

function tellDetached({ run, terminal }: { run: string; terminal: Terminal }): void {
  terminal.result({ document: { run }, text: `Follow it with: ${shell`connector watch ${run}`}` })
}

async function leave({ session, run, terminal }: { session: Session; run: string; terminal: Terminal }) {
  const next = await session.letGo()
  terminal.note(
    next === 'waits'
      ? `The run ${run} waits. The same command goes on with it.`
      : `The run ${run} goes on. Follow it with: ${shell`connector watch ${run}`}`,
  )
  process.exit(exitCodes.failed)
}
