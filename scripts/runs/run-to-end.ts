import { type Workflow, WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client'
import { connector } from '../../core/runs/view/shell.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { LocalSessionOptions } from '../session/local-session.ts'
import { inSession, openSession, type Session } from '../session/session.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Attached } from './attach.ts'

/** The context of a command that starts a run. */
export interface Call {
  settings: Settings
  terminal: Terminal
  local: boolean
  detach: boolean
}

/** A run, as followed by its command. */
export interface Following<W extends Workflow = Workflow> {
  session: Pick<Session, 'client' | 'lost'>
  handle: WorkflowHandle<W>
  terminal: Terminal
  settings: Settings
  /** Whether the command has a server and worker of its own. */
  local?: boolean
}

interface RunToEnd<W extends Workflow> extends Call {
  /** False if the run does not use the service, which may then be down. */
  needsService?: boolean
  /** The workflow id of the run whose changes a worker of this command may send. */
  writes?: string
  start(session: Session): Promise<Attached<W>>
  /** Shows the run until it ends and prints its report. */
  follow(following: Following<W>): Promise<unknown>
  /** Describes what Ctrl-C stops; absent if it only detaches. */
  stopNote?: string
}

/**
 * Starts a run, or resumes the unfinished one of the same command, and follows it to its end.
 */
export async function runToEnd<W extends Workflow>(options: RunToEnd<W>): Promise<void> {
  const { settings, terminal, detach, needsService = true, writes } = options
  const sessionOptions = {
    settings,
    terminal,
    needsService,
    hasLocal: true,
    ...(writes !== undefined && { mayWrite: (run: string) => run === writes }),
  }
  const session = options.local ? await openLocal(sessionOptions) : await openSession(sessionOptions)
  await inSession(session, async () => {
    const { identity } = session
    terminal.identity({ workspace: identity.workspace, testMode: identity.mode === 'test' })
    const { handle, attached } = await options.start(session)
    terminal.note(`${attached ? 'Resumes the unfinished run' : 'Run'} ${handle.workflowId}`)
    if (detach)
      return terminal.result({
        document: { run: handle.workflowId },
        text: `Follow it with: ${connector`run watch ${handle.workflowId}`}`,
      })
    using _interrupt = stopOnInterrupt({ ...options, session, handle })
    await options.follow({ session, handle, terminal, settings, local: options.local })
  })
}

/** Loaded late: a command beside a worker starts neither server nor worker. */
async function openLocal(options: LocalSessionOptions): Promise<Session> {
  const { openLocalSession } = await import('../session/local-session.ts')
  return await openLocalSession(options)
}

/** Handles Ctrl-C: the first asks the run to stop cleanly, the second detaches from it. */
export function stopOnInterrupt(options: {
  session: Pick<Session, 'detach'>
  handle: Pick<WorkflowHandle, 'workflowId' | 'signal'>
  terminal: Terminal
  stopNote?: string
}): Disposable {
  const { session, handle, terminal, stopNote } = options
  const run = handle.workflowId
  const detach = async () => {
    const next = await session.detach()
    terminal.note(
      next === 'waits'
        ? `The run ${run} waits. Run the same command again to resume it.`
        : `The run ${run} continues. Follow it with: ${connector`run watch ${run}`}`,
    )
    process.exit(exitCodes.failed)
  }
  return onInterrupt({
    async first() {
      if (stopNote === undefined) {
        await detach()
        return
      }
      terminal.note(`Stopping: ${stopNote}. Press Ctrl-C again to detach.`)
      await handle.signal('stop').catch((error: unknown) => {
        // The run ended before the request arrived.
        if (!(error instanceof WorkflowNotFoundError)) throw error
      })
    },
    second: detach,
  })
}
