import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { runFiles } from '../../core/imports/plan.ts'
import type { ImportReport } from '../../core/imports/view.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { ImportProgress } from '../../workflows/import-details.ts'
import type { importFile } from '../../workflows/import-file.ts'
import { followChanges, stopChangesOnInterrupt } from './follow-changes.ts'
import { answerImport } from './ask-import.ts'
import { handIn, type HandedIn, importFolder } from './import-folder.ts'
import type { ImportOrder } from './import-request.ts'
import { previewImport } from './preview-import.ts'
import { reportImport } from './report-import.ts'
import type { ImportHandle } from './start-import.ts'
import { openLocalSession } from '../session/local-session.ts'
import { openSession, resumeOrThrow, type Session } from '../session/session.ts'
import { startImport } from './start-import.ts'
import { exitCodes } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

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
          text: `Follow it with: ${shell`connector watch ${handed.run}`}`,
        })
      using _interrupt = stopChangesOnInterrupt({ session, handle, terminal })
      await followImport({ session, handle, terminal, settings })
      return
    } catch (error) {
      if (!session.gone.aborted) await handed.remove()
      resumeOrThrow({ session, error, terminal })
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
  const { handle, terminal, settings } = options
  const run = await followChanges<ImportProgress>({
    ...options,
    unit: 'rows',
    nameOf: ({ kind }) => kind ?? 'import',
    onQuestion: (progress, signal) => answerImport({ handle, progress, terminal, settings, signal }),
  })
  return await reportImport({ run, terminal, settings })
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
