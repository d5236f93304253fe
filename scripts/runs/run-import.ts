import { access, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImportInput, runFiles } from '../../core/imports/input.ts'
import type { Origin } from '../../core/imports/run-files.ts'
import { replaceFile } from '../../core/storage/durable.ts'
import type { importFile } from '../../workflows/import-file.ts'
import type { Session } from '../session/session.ts'
import { exitCodes } from '../terminal/failures.ts'
import { attach, type Attached } from './attach.ts'
import { followImport } from './follow-changes.ts'
import { previewImport } from './preview-import.ts'
import { reportImport } from './report-changes.ts'
import { importFolder } from './run-folders.ts'
import { awaitAnyEnd, isResolving } from './resolving-run.ts'
import { type Call, runToEnd } from './run-to-end.ts'
import { type ImportOrder, storeUpload, uploadImport, type UploadedImport } from './upload-import.ts'

interface Importing extends Pick<Call, 'settings' | 'terminal'> {
  order: ImportOrder
}

/** Imports a file, or resumes the unfinished import of the same one, and follows it to its end. */
export async function runImport(importing: Importing): Promise<void> {
  const { settings, terminal, order } = importing
  const uploaded = await uploadImport(importing)
  await using _ = uploaded.prepared
  await previewImport({ ...importing, uploaded })
  if (uploaded.before === 'finished') return await reportFinished({ ...importing, run: uploaded.run })
  await runToEnd<typeof importFile>({
    settings,
    terminal,
    local: order.local,
    detach: order.detach,
    writes: uploaded.run,
    async start(session) {
      await noteOrigin({ settings, order, run: uploaded.run })
      return await startImport({ ...importing, session, uploaded })
    },
    follow: followImport,
    stopNote: 'everything that was sent is on record; run the same command again to resume',
  })
}

/** Notes the person's own file for the next steps of the run's report. */
async function noteOrigin(of: Pick<Importing, 'settings' | 'order'> & { run: string }): Promise<void> {
  const { settings, order, run } = of
  const { file, reading } = order
  const folder = importFolder({ dataDir: settings.dataDir, run })
  await mkdir(folder, { recursive: true })
  await replaceFile(join(folder, runFiles.origin), JSON.stringify({ file, reading } satisfies Origin))
}

export async function startImport({
  settings,
  terminal,
  order,
  session,
  uploaded,
}: Importing & { session: Session; uploaded: UploadedImport }): Promise<Attached<typeof importFile>> {
  const { run } = uploaded
  const input = {
    ...toInput({ order, session, isInteractive: terminal.isInteractive }),
    ...(await storeUpload(uploaded, settings)),
  }
  const start = () =>
    attach<typeof importFile>({
      client: session.client,
      taskQueue: settings.taskQueue,
      workflow: 'importFile',
      workflowId: run,
      input,
      summary: `${order.input.kind} from a file`,
    })
  let { handle, attached } = await start()
  while (attached && (await isResolving(handle))) {
    terminal.note(`The run ${run} sends rows that were resolved. The import continues when it has ended.`)
    await awaitAnyEnd(handle)
    ;({ handle, attached } = await start())
  }
  return { handle, attached: attached || uploaded.before === 'unfinished' }
}

function toInput({
  order: { input, yes, detach },
  session: { identity },
  isInteractive,
}: {
  order: ImportOrder
  session: Session
  isInteractive: boolean
}): Omit<ImportInput, 'file'> {
  return {
    ...input,
    confirmCanary: isInteractive && !yes && identity.mode === 'live' && !detach,
    attended: isInteractive && !detach,
    identity,
  }
}

/**
 * Reports an import whose run has already ended: nothing is sent, and from the second time on the exit code says
 * so.
 */
async function reportFinished(options: Importing & { run: string }): Promise<void> {
  const { settings, terminal, run, order } = options
  const { dataDir } = settings
  const wasShown = await access(join(importFolder({ dataDir, run }), runFiles.shown)).then(
    () => true,
    () => false,
  )
  terminal.note(`The run ${run} of this file has ended, so nothing was sent now. This is its report:`)
  await reportImport({ run, terminal, settings, local: order.local })
  if (wasShown) process.exitCode = exitCodes.refused
}
