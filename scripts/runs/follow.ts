import { formatWere } from '../../core/runs/view/format.ts'
import { ServiceError, WorkflowFailedError, type WorkflowHandle } from '@temporalio/client'
import { userInfo } from 'node:os'
import type { ExportReport } from '../../core/exports/report.ts'
import { describeSentRows } from '../../core/imports/sent-rows.ts'
import type { FullReport as FullImportReport } from '../../core/imports/view.ts'
import { type FullReport as FullRecoveryReport, toPreviewTables } from '../../core/recoveries/view.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { toTablesText } from '../../core/runs/view/text.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { ImportProgress, RecoveryProgress, WriteProgress } from '../../workflows/write-run/progress.ts'
import type { Session } from '../session/session.ts'
import { exitCodes, toFailure } from '../terminal/failures.ts'
import { isYes, type Terminal } from '../terminal/terminal.ts'
import type { RunKind } from './find-run.ts'
import { sentWhenAsked, toQuestion } from './held-up.ts'
import { reportExport, reportImport, reportRecovery } from './report.ts'
import { openToRead, planOf } from './run-files.ts'
import { observeChanges, observeExport, type Observe, showRun } from './show-run.ts'

/** A run that a command follows. */
export interface Following {
  session: Pick<Session, 'client' | 'lost'>
  handle: WorkflowHandle
  terminal: Terminal
  settings: Settings
  /** Whether the command has a server and worker of its own. */
  local?: boolean
}

/** The Temporal server was lost while a run was followed; the run itself is safe in its database. */
class TemporalLostError extends Error {
  override readonly name = 'TemporalLostError'
  readonly hint: string
  constructor({ run, cause }: { run: string; cause: unknown }) {
    super('Temporal does not answer any more.', { cause })
    this.hint = `The run continues when Temporal and the worker are back. Follow it with: ${connector`run watch ${run}`}`
  }
}

/** Shows a run until it ends, asks its questions, prints its report and sets the exit code. */
export async function followRun({ kind, ...following }: Following & { kind: RunKind }): Promise<void> {
  if (kind === 'import') await followImport(following)
  else if (kind === 'recovery') await followRecovery(following)
  else await followExport(following)
}

/** Of an export, a fetch, or a run that publishes one again: all end in the report of an export. */
export async function followExport(following: Following): Promise<ExportReport> {
  const report = await follow<ExportReport>(following, observeExport(following))
  await reportExport({ ...following, report })
  return report
}

export async function followImport(following: Following): Promise<FullImportReport> {
  const nameOf = ({ kind }: ImportProgress) => kind ?? 'import'
  const run = await followChanges<ImportProgress>(following, { unit: 'rows', nameOf, ask: askOfImport })
  return await reportImport({ ...following, run })
}

export async function followRecovery(following: Following): Promise<FullRecoveryReport> {
  const nameOf = () => 'recovery'
  const asked = { unit: 'subscriptions', nameOf, ask: askOfRecovery } as const
  const run = await followChanges<RecoveryProgress>(following, asked)
  return await reportRecovery({ ...following, run })
}

async function followChanges<P extends WriteProgress>(
  following: Following,
  { ask, ...shown }: { unit: 'rows' | 'subscriptions'; nameOf: (progress: P) => string; ask: Ask<P> },
): Promise<string> {
  const { handle, terminal } = following
  const onQuestion = async (progress: P, signal: AbortSignal) =>
    await answer({ ...following, progress, signal, ...(await ask(progress, following)) })
  try {
    const observe = observeChanges<P>({ ...shown, handle, onQuestion })
    return (await follow<{ run: string }>(following, observe)).run
  } catch (error) {
    // A run that was refused has sent nothing, and says so itself.
    if (error instanceof WorkflowFailedError && toFailure(error).exitCode === exitCodes.failed)
      terminal.note(
        `What was sent, if anything, is in the report: ${connector`run report ${handle.workflowId}`}`,
      )
    throw error
  }
}

/**
 * Shows the progress of a run until it ends and returns its result.
 *
 * @throws the failure of the run, TemporalLostError, or a cancellation if `lost` is aborted
 */
async function follow<Result>(following: Following, observe: Observe): Promise<Result> {
  const { handle, terminal } = following
  const { client, lost } = following.session
  const ended = new AbortController()
  const signal = AbortSignal.any([ended.signal, lost])
  const showing = showRun({ client, observe, terminal, signal })
  try {
    return (await client.withAbortSignal(signal, () => handle.result())) as Result
  } catch (cause) {
    if (!(cause instanceof ServiceError) || lost.aborted) throw cause
    throw new TemporalLostError({ run: handle.workflowId, cause })
  } finally {
    ended.abort()
    await showing
  }
}

/** How a person at the terminal is asked. */
interface Question {
  text: string
  /** Printed after a no. */
  declined: string
  /** Whether someone other than the person who started the run should answer. */
  isForOthers: boolean
}

type Ask<P> = (progress: P, following: Following) => Promise<Question>

const askOfImport: Ask<ImportProgress> = async (progress, { terminal, settings }) => {
  const { waitingFor, counts, staged, kind } = progress
  const { question, count } = waitingFor ?? {}
  const sent = sentWhenAsked(progress)
  if (question === 'canary' && terminal.isInteractive && staged?.canary.length)
    terminal.note(await describeSent(settings, progress.run))
  const left = counts?.staged ?? staged?.open ?? 0
  const sending =
    sent === 0
      ? `Nothing was sent yet. Send the ${left} ${kind}? [y/N] `
      : `${formatWere(sent)} sent; send the other ${left} ${kind}? [y/N] `
  const trying = 'Too many rows failed, and so did every trial after that. Try the others anyway? [y/N] '
  return {
    text:
      count === undefined
        ? question === 'breaker'
          ? trying
          : sending
        : `Type ${count} to delete ${count} orders: `,
    declined: 'Nothing more is sent.',
    isForOthers: question === 'approval' && count === undefined,
  }
}

const askOfRecovery: Ask<RecoveryProgress> = async ({ waitingFor, staged }, { terminal }) => {
  const isBreaker = waitingFor?.question === 'breaker'
  if (staged !== undefined && waitingFor?.question === 'approval')
    terminal.note(toTablesText(toPreviewTables(staged.preview)))
  return {
    text: isBreaker
      ? 'Too many resumes failed, and so did every trial after that. Try the others anyway? [y/N] '
      : `Resume ${staged?.preview.toResume ?? 0} subscriptions? [y/N] `,
    declined: 'Nothing more is resumed.',
    isForOthers: false,
  }
}

/** Asks the person at the terminal, or prints the commands that answer the question. */
async function answer(
  of: Question & Pick<Following, 'handle' | 'terminal'> & { progress: WriteProgress; signal: AbortSignal },
): Promise<void> {
  const { handle, progress, terminal, signal, isForOthers, text, declined } = of
  const { waitingFor, run = handle.workflowId } = progress
  if (waitingFor === undefined) return
  const { count } = waitingFor
  if (!terminal.isInteractive || isForOthers) return terminal.note(toQuestion(progress, run) ?? '')
  const line = await terminal.ask(text, { signal }).catch(() => '')
  if (signal.aborted) return
  const isApproved = count === undefined ? isYes(line) : line === String(count)
  if (!isApproved) {
    terminal.note(declined)
    return await handle.signal('stop')
  }
  const why = 'answered yes at the terminal'
  const approval = { by: userInfo().username, why, ...(count !== undefined && { count }) }
  await handle.executeUpdate('approve', { args: [approval] })
}

const mostShown = 10

/** Describes the rows sent so far, with the fields that the service changed or added. */
async function describeSent(settings: Settings, run = ''): Promise<string> {
  const plan = await planOf(settings, run)
  if (plan?.job !== 'import') return 'Nothing was sent yet.'
  await using state = await openToRead(settings.state)
  return await describeSentRows({ ledger: state.ledger, plan, most: mostShown })
}
