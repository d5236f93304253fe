import type { WorkflowHandle } from '@temporalio/client'
import { describeSentRows } from '../../core/imports/sent-rows.ts'
import { toPreviewTables } from '../../core/recoveries/view.ts'
import { toTablesText } from '../../core/runs/view/text.ts'
import { openState } from '../../core/state/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { ImportProgress } from '../../workflows/import-view.ts'
import type { RecoveryProgress } from '../../workflows/recovery-view.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import { isYes, type Terminal } from '../terminal/terminal.ts'
import { fetchInput } from './fetch-run.ts'
import { userInfo } from 'node:os'
import { toQuestion } from './question.ts'
import { planOf } from './saved-plan.ts'

interface Asked<P extends WriteProgress> {
  handle: Pick<WorkflowHandle, 'workflowId' | 'signal' | 'executeUpdate'>
  progress: P
  terminal: Terminal
  signal: AbortSignal
}

export async function answerImport(asked: Asked<ImportProgress> & { settings: Settings }): Promise<void> {
  const { progress, terminal, settings } = asked
  const { waitingFor, counts, staged, kind } = progress
  const sent = staged?.canary.length ?? 0
  if (waitingFor?.question === 'canary' && terminal.isInteractive && sent > 0)
    terminal.note(await describeSent({ progress, settings }))
  const left = counts?.staged ?? staged?.open ?? 0
  await answer({
    ...asked,
    // An import should be approved by someone other than the person who started it.
    isForOthers: waitingFor?.question === 'approval' && waitingFor.count === undefined,
    text:
      waitingFor?.count !== undefined
        ? `Type ${waitingFor.count} to delete ${waitingFor.count} orders: `
        : waitingFor?.question === 'breaker'
          ? 'Too many rows failed, and so did every trial after that. Try the others anyway? [y/N] '
          : sent === 0
            ? `Nothing was sent yet. Send the ${left} ${kind}? [y/N] `
            : `${sent} were sent; send the other ${left} ${kind}? [y/N] `,
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

/** Asks the person at the terminal, or prints the commands that answer the question. */
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
  const { count } = waitingFor
  if (!terminal.isInteractive || isForOthers) return terminal.note(toQuestion({ ...waitingFor, run }))
  const line = await terminal.ask(text, { signal }).catch(() => '')
  if (signal.aborted) return
  const isGiven = count === undefined ? isYes(line) : line === String(count)
  if (!isGiven) {
    terminal.note(declined)
    return await handle.signal('stop')
  }
  const approval = {
    by: userInfo().username,
    why: 'answered yes at the terminal',
    ...(count !== undefined && { count }),
  }
  await handle.executeUpdate('approve', { args: [approval] })
}

const mostShown = 10

/** Describes the rows sent so far as in the sheet, with the fields that the service changed or added. */
async function describeSent({
  progress: { run = '' },
  settings,
}: {
  progress: ImportProgress
  settings: Settings
}): Promise<string> {
  const { dataDir, state: place } = settings
  const plan = await planOf(settings, run)
  if (plan === undefined) return 'Nothing was sent yet.'
  const state = await openState({ ...place, readOnly: true })
  try {
    const { ledger } = state
    await fetchInput(settings, plan)
    return await describeSentRows({ ledger, plan, dataDir, most: mostShown })
  } finally {
    await state.close()
  }
}
