import {
  ServiceError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  type WorkflowHandle,
} from '@temporalio/client'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import { TemporalLostError } from './follow-export.ts'
import type { Session } from '../session/session.ts'
import { type Show, showChanges } from './show-changes.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

/** A workflow of changes: its result begins with the name of its run. */
type ChangesHandle = Pick<WorkflowHandle, 'workflowId' | 'signal' | 'describe' | 'query'> & {
  result(): Promise<{ run: string }>
}

interface Follow<Progress extends WriteProgress> extends Pick<Show<Progress>, 'unit' | 'nameOf'> {
  session: Pick<Session, 'client' | 'gone'>
  handle: ChangesHandle
  terminal: Terminal
  /** Called once for each question that the run has for a person. */
  onQuestion: (progress: Progress, signal: AbortSignal) => Promise<void>
}

/** Shows a run of changes until it ends, and passes on what it asks. Gives the name of the run. */
export async function followChanges<Progress extends WriteProgress>(
  options: Follow<Progress>,
): Promise<string> {
  const { session, handle, terminal, unit, nameOf, onQuestion } = options
  const { client, gone } = session
  const ended = new AbortController()
  const signal = AbortSignal.any([ended.signal, gone])
  const ask = (progress: Progress) => onQuestion(progress, signal)
  const showing = showChanges<Progress>({
    client,
    handle,
    terminal,
    unit,
    nameOf,
    signal,
    onQuestion: ask,
  })
  try {
    return (await client.withAbortSignal(signal, () => handle.result())).run
  } catch (cause) {
    if (cause instanceof WorkflowFailedError)
      terminal.note(`What was sent and what was not: ${shell`connector report ${handle.workflowId}`}`)
    if (!(cause instanceof ServiceError) || gone.aborted) throw cause
    throw new TemporalLostError({ run: handle.workflowId, cause })
  } finally {
    ended.abort()
    await showing
  }
}

/** Ctrl-C asks the run of this command to stop cleanly; a second one lets go of it. */
export function stopChangesOnInterrupt({
  session,
  handle,
  terminal,
  says = 'what was sent is known, and the same command goes on',
}: {
  session: Session
  handle: ChangesHandle
  terminal: Terminal
  says?: string
}): Disposable {
  return onInterrupt({
    async first() {
      terminal.note(`Stopping: ${says}. Ctrl-C again leaves it.`)
      await handle.signal('stop').catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error
      })
    },
    async second() {
      const next = await session.letGo()
      terminal.note(
        next === 'waits'
          ? `The run ${handle.workflowId} waits. The same command goes on with it.`
          : `The run ${handle.workflowId} goes on. Follow it with: ${shell`connector watch ${handle.workflowId}`}`,
      )
      process.exit(exitCodes.failed)
    },
  })
}
