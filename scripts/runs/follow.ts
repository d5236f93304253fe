import { type Client, ServiceError, WorkflowFailedError } from '@temporalio/client'
import type { ExportReport } from '../../core/exports/report.ts'
import { shell } from '../../core/runs/view/shell.ts'
import type { importFile } from '../../workflows/import-file.ts'
import type { ImportProgress } from '../../workflows/import-view.ts'
import type { recoverSubscriptions } from '../../workflows/recover-subscriptions.ts'
import type { RecoveryProgress } from '../../workflows/recovery-view.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { answerImport, answerRecovery } from './ask.ts'
import type { ExportHandle } from './find-run.ts'
import { reportImport, reportRecovery } from './report.ts'
import type { Following } from './run-to-end.ts'
import { observeChanges, observeExport, type Observe, showRun } from './show-run.ts'

/** The Temporal server was lost while a run was followed; the run itself is safe in its database. */
export class TemporalLostError extends Error {
  override readonly name = 'TemporalLostError'
  readonly hint: string
  constructor({ run, cause }: { run: string; cause: unknown }) {
    super('Temporal does not answer any more.', { cause })
    this.hint = `The run continues when Temporal and the worker are back. Follow it with: ${shell`connector watch ${run}`}`
  }
}

/**
 * Shows the progress of a run until it ends and returns its result.
 *
 * @throws the failure of the run, TemporalLostError, or a cancellation if `serverLost` is aborted
 */
async function follow<Result>(options: {
  client: Client
  serverLost: AbortSignal
  handle: { workflowId: string; result(): Promise<Result> }
  terminal: Terminal
  observe: (signal: AbortSignal) => Observe
}): Promise<Result> {
  const { client, serverLost, handle, terminal, observe } = options
  const ended = new AbortController()
  const signal = AbortSignal.any([ended.signal, serverLost])
  const showing = showRun({ client, observe: observe(signal), terminal, signal })
  try {
    return await client.withAbortSignal(signal, () => handle.result())
  } catch (cause) {
    if (!(cause instanceof ServiceError) || serverLost.aborted) throw cause
    throw new TemporalLostError({ run: handle.workflowId, cause })
  } finally {
    ended.abort()
    await showing
  }
}

export const followExport = ({
  client,
  handle,
  terminal,
  serverLost = new AbortController().signal,
}: {
  client: Client
  handle: ExportHandle
  terminal: Terminal
  serverLost?: AbortSignal
}): Promise<ExportReport> =>
  follow({ client, serverLost, handle, terminal, observe: () => observeExport({ client, handle }) })

/** Shows an import until it ends, asks its questions, and prints its report. */
export async function followImport(options: Following<typeof importFile> & { show?: 'json' | undefined }) {
  const { handle, terminal, settings, local, show } = options
  const run = await followChanges({
    ...options,
    observe: (signal) =>
      observeChanges<ImportProgress>({
        handle,
        unit: 'rows',
        nameOf: ({ kind = 'import' }) => kind,
        onQuestion: (progress) => answerImport({ handle, progress, terminal, settings, signal, show }),
      }),
  })
  return await reportImport({ run, terminal, settings, local })
}

/** Shows a recovery until it ends, asks its questions, and prints its report. */
export async function followRecovery(options: Following<typeof recoverSubscriptions>) {
  const { handle, terminal, settings, local } = options
  const run = await followChanges({
    ...options,
    observe: (signal) =>
      observeChanges<RecoveryProgress>({
        handle,
        unit: 'subscriptions',
        nameOf: () => 'recovery',
        onQuestion: (progress) => answerRecovery({ handle, progress, terminal, signal }),
      }),
  })
  return await reportRecovery({ run, terminal, settings, local })
}

async function followChanges({
  session,
  handle,
  terminal,
  observe,
}: Omit<Following, 'handle' | 'settings'> & {
  handle: { workflowId: string; result(): Promise<{ run: string }> }
  observe: (signal: AbortSignal) => Observe
}): Promise<string> {
  try {
    return (await follow({ ...session, handle, terminal, observe })).run
  } catch (error) {
    if (error instanceof WorkflowFailedError)
      terminal.note(
        `Everything that was sent is in the report: ${shell`connector report ${handle.workflowId}`}`,
      )
    throw error
  }
}
