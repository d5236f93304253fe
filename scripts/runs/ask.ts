import type { WorkflowHandle } from '@temporalio/client'
import { userInfo } from 'node:os'
import { toPreviewTables } from '../../core/recoveries/view.ts'
import { formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { shell } from '../../core/runs/view/shell.ts'
import { toTablesText } from '../../core/runs/view/text.ts'
import { openState } from '../../core/state/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { ImportProgress } from '../../workflows/import-view.ts'
import type { RecoveryProgress } from '../../workflows/recovery-view.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The user of this machine. */
export const personHere = (): string => userInfo().username

interface Asked<P extends WriteProgress> {
  handle: Pick<WorkflowHandle, 'workflowId' | 'signal' | 'executeUpdate'>
  progress: P
  terminal: Terminal
  signal: AbortSignal
}

export async function answerImport(asked: Asked<ImportProgress> & { settings: Settings }): Promise<void> {
  const { progress, terminal, settings } = asked
  const { waitingFor, counts, staged, kind } = progress
  if (waitingFor?.question === 'canary' && terminal.isInteractive)
    terminal.note(await describeSent({ progress, settings }))
  const left = counts?.staged ?? staged?.open ?? 0
  await answer({
    ...asked,
    // Approving an import before it sends is for another person than the one who started it.
    isForOthers: waitingFor?.question === 'approval' && waitingFor.count === undefined,
    text:
      waitingFor?.count !== undefined
        ? `Type ${waitingFor.count} to delete ${waitingFor.count} orders: `
        : waitingFor?.question === 'breaker'
          ? 'Too many rows failed, and so did every trial after that. Try the others anyway? [y/N] '
          : `Send the other ${left} ${kind}? [y/N] `,
    declined: 'Nothing more is sent.',
  })
}

export async function answerRecovery(asked: Asked<RecoveryProgress>): Promise<void> {
  const { progress, terminal } = asked
  const { waitingFor, staged } = progress
  if (staged !== undefined && waitingFor?.question === 'approval')
    terminal.note(toTablesText(toPreviewTables(staged.preview)))
  await answer({
    ...asked,
    isForOthers: false,
    text:
      waitingFor?.question === 'breaker'
        ? 'Too many resumes failed, and so did every trial after that. Try the others anyway? [y/N] '
        : `Resume ${staged?.preview.toResume ?? 0} subscriptions? [y/N] `,
    declined: 'Nothing more is resumed.',
  })
}

/** Asks the person at the terminal, or prints the commands that answer. */
async function answer({
  handle,
  progress,
  terminal,
  signal,
  isForOthers,
  text,
  declined,
}: Asked<WriteProgress> & { isForOthers: boolean; text: string; declined: string }): Promise<void> {
  const { waitingFor, run = handle.workflowId } = progress
  if (waitingFor === undefined) return
  const { count, until } = waitingFor
  if (!terminal.isInteractive || isForOthers) {
    const confirmed = count === undefined ? '' : ` --count ${count}`
    return terminal.note(
      `The run waits for approval until ${formatLocalTime(until, 'minutes')}. To approve: ${shell`connector approve ${run}`}${confirmed} --why "..."; to end it: ${shell`connector stop ${run}`}`,
    )
  }
  const line = await terminal.ask(text, { signal }).catch(() => '')
  if (signal.aborted) return
  const isYes = count === undefined ? /^(y|yes|s|si|sí)$/i.test(line) : line === String(count)
  if (!isYes) {
    terminal.note(declined)
    return await handle.signal('stop')
  }
  const approval = {
    by: personHere(),
    why: 'answered yes at the terminal',
    ...(count !== undefined && { count }),
  }
  await handle.executeUpdate('approve', { args: [approval] })
}

const mostShown = 10

/** The rows sent so far, with what the service stored. */
async function describeSent({
  progress: { run = '' },
  settings,
}: {
  progress: ImportProgress
  settings: Settings
}): Promise<string> {
  const state = await openState({ folder: settings.dataDir, readOnly: true })
  try {
    const rows: string[][] = []
    for await (const row of state.ledger.rows({ run }))
      if (row.sentAt !== null && rows.length < mostShown)
        rows.push([String(row.row), row.state, row.body, row.answer ?? row.error ?? ''])
    if (rows.length === 0) return 'Nothing was sent yet.'
    return formatTable({ head: ['row', 'state', 'sent', 'stored'], rows })
  } finally {
    await state.close()
  }
}
