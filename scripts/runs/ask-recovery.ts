import { describePreview } from './preview-recovery.ts'
import type { RecoveryProgress } from '../../workflows/recovery-details.ts'
import { personHere } from './ask-import.ts'
import type { RecoveryHandle } from './recovery-folder.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

/** Puts a recovery's question to the person at the terminal, or says where it can be answered. */
export async function answerRecovery({
  handle,
  progress,
  terminal,
  signal,
}: {
  handle: RecoveryHandle
  progress: RecoveryProgress
  terminal: Terminal
  signal: AbortSignal
}): Promise<void> {
  const { waitingFor, staged } = progress
  if (waitingFor === undefined) return
  const preview = staged?.preview
  if (preview !== undefined && waitingFor.what === 'approval') terminal.note(describePreview(preview))
  if (!terminal.isInteractive) {
    const run = handle.workflowId
    terminal.note(
      `The run waits until ${waitingFor.until}. Go on with: ${shell`connector approve ${run}`} --why "..."; end it with: ${shell`connector stop ${run}`}`,
    )
    return
  }
  const question =
    waitingFor.what === 'breaker'
      ? 'Too many resumes failed, and every trial after that. Try the others all the same? [y/N] '
      : `Resume ${preview?.toResume ?? 0} subscriptions? [y/N] `
  const said = await terminal.ask(question, { signal }).catch(() => '')
  if (signal.aborted) return
  if (!/^(y|yes|s|si|sí)$/i.test(said)) {
    terminal.note('Nothing more is resumed.')
    return await handle.signal('stop')
  }
  await handle.executeUpdate('approve', {
    args: [{ by: personHere(), why: 'answered yes at the terminal' }],
  })
}
