import { ServiceError, WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { runFiles } from '../imports/import-plan.ts'
import type { ImportReport } from '../imports/write-report.ts'
import type { Settings } from '../worker/settings.ts'
import type { importFile } from '../workflows/import-file.ts'
import { TemporalLostError } from './follow-export.ts'
import { answerImport } from './import-ask.ts'
import { handIn, type HandedIn, importFolder } from './import-folder.ts'
import type { ImportOrder } from './import-order.ts'
import { previewImport } from './import-preview.ts'
import { reportImport } from './import-report.ts'
import { type ImportHandle, showImport } from './import-show.ts'
import { openLocalSession } from './local-session.ts'
import { openSession, type Session } from './session.ts'
import { startImport } from './start-import.ts'
import { exitCodes } from './terminal/failures.ts'
import { onInterrupt } from './terminal/interrupt.ts'
import type { Terminal } from './terminal/terminal.ts'

interface Call {
  settings: Settings
  terminal: Terminal
  order: ImportOrder
}

/** Imports a file, or goes on with the unfinished import of the same one, and tells how it ends. */
export async function runImport(call: Call): Promise<void> {
  const { settings, terminal, order } = call
  await previewImport(call)
  const handed = await handIn(call)
  if (handed.before === 'finished') {
    await handed.remove()
    return await tellFinished({ ...call, run: handed.run })
  }
  let isStarted = false
  for (;;) {
    const session = await open(call, handed).catch(async (error: unknown) => {
      if (!isStarted) await handed.remove()
      throw error
    })
    try {
      const { client, identity } = session
      terminal.identity({ workspace: identity.workspace, testMode: identity.mode === 'test' })
      const handle = isStarted
        ? client.workflow.getHandle<typeof importFile>(handed.run)
        : await startImport({ ...call, session, handed })
      isStarted = true
      if (order.detach)
        return terminal.result({
          document: { run: handed.run },
          text: `Follow it with: connector watch ${handed.run}`,
        })
      using _interrupt = stopOnInterrupt({ session, handle, terminal })
      await followImport({ session, handle, terminal, settings })
      return
    } catch (error) {
      if (!session.gone.aborted) {
        await handed.remove()
        throw error
      }
      terminal.note('The command whose Temporal server this one used has ended: this one starts its own.')
    } finally {
      await session.close()
    }
  }
}

/** A worker of its own sends this run's changes, and no other run's. */
function open({ settings, terminal, order }: Call, { run }: HandedIn): Promise<Session> {
  if (!order.local) return openSession({ settings, terminal })
  return openLocalSession({ settings, terminal, mayWrite: (other) => other === run })
}

/** Shows an import until it ends, answers what it asks, and tells its report. */
export async function followImport(options: {
  session: Pick<Session, 'client' | 'gone'>
  handle: ImportHandle
  terminal: Terminal
  settings: Settings
}): Promise<ImportReport> {
  const { session, handle, terminal, settings } = options
  const { client, gone } = session
  const ended = new AbortController()
  const signal = AbortSignal.any([ended.signal, gone])
  const onQuestion: Parameters<typeof showImport>[0]['onQuestion'] = (progress) =>
    answerImport({ handle, progress, terminal, settings, signal })
  const showing = showImport({ client, handle, terminal, signal, onQuestion })
  let run: string
  try {
    ;({ run } = await client.withAbortSignal(signal, () => handle.result()))
  } catch (cause) {
    if (cause instanceof WorkflowFailedError)
      terminal.note(`What was sent and what was not: connector report ${handle.workflowId}`)
    if (!(cause instanceof ServiceError) || gone.aborted) throw cause
    throw new TemporalLostError({ run: handle.workflowId, cause })
  } finally {
    ended.abort()
    await showing
  }
  return await reportImport({ run, terminal, settings })
}

/** Ctrl-C asks the run of this command to stop cleanly; a second one lets go of it. */
export function stopOnInterrupt({
  session,
  handle,
  terminal,
}: {
  session: Session
  handle: ImportHandle
  terminal: Terminal
}): Disposable {
  return onInterrupt({
    async first() {
      terminal.note('Stopping: what was sent is known, and the same command goes on. Ctrl-C again leaves it.')
      await handle.signal('stop').catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error
      })
    },
    async second() {
      const next = await session.letGo()
      terminal.note(
        next === 'waits'
          ? `The run ${handle.workflowId} waits. The same command goes on with it.`
          : `The run ${handle.workflowId} goes on. Follow it with: connector watch ${handle.workflowId}`,
      )
      process.exit(exitCodes.failed)
    },
  })
}

/** The same file again, and its run has ended: nothing is sent, and the exit code says so from the second time on. */
async function tellFinished({ settings, terminal, run }: Call & { run: string }): Promise<void> {
  const { dataDir } = settings
  const wasShown = await access(join(importFolder({ dataDir, run }), runFiles.shown)).then(
    () => true,
    () => false,
  )
  terminal.note(
    `The run ${run} of this file has ended, and nothing more was sent. --done skip sends what it left; --send-again --rows sends single rows once more.`,
  )
  await reportImport({ run, terminal, settings })
  if (wasShown) process.exitCode = exitCodes.refused
}
