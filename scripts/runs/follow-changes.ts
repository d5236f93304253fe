import { WorkflowFailedError } from '@temporalio/client'
import { connector } from '../../core/runs/view/shell.ts'
import type { importFile } from '../../workflows/import-file.ts'
import type { ImportProgress } from '../../workflows/import-view.ts'
import type { recoverSubscriptions } from '../../workflows/recover-subscriptions.ts'
import type { RecoveryProgress } from '../../workflows/recovery-view.ts'
import { answerImport, answerRecovery } from './ask.ts'
import { exitCodes, toFailure } from '../terminal/failures.ts'
import { follow } from './follow.ts'
import { reportImport, reportRecovery } from './report-changes.ts'
import type { Following } from './run-to-end.ts'
import { observeChanges, type Observe } from './show-run.ts'

/** Shows an import until it ends, asks its questions, and prints its report. */
export async function followImport(options: Following<typeof importFile>) {
  const { handle, terminal, settings, local } = options
  const run = await followChanges({
    ...options,
    observe: (signal) =>
      observeChanges<ImportProgress>({
        handle,
        unit: 'rows',
        nameOf: ({ kind = 'import' }) => kind,
        onQuestion: (progress) => answerImport({ handle, progress, terminal, settings, signal }),
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
    // A run that was refused has sent nothing, and says so itself.
    if (error instanceof WorkflowFailedError && toFailure(error).exitCode === exitCodes.failed)
      terminal.note(
        `What was sent, if anything, is in the report: ${connector`run report ${handle.workflowId}`}`,
      )
    throw error
  }
}
