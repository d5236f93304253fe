import { ServiceError, type Client } from '@temporalio/client'
import type { Command } from 'commander'
import type { ExportProgress } from '../../workflows/export-view.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import { followExport } from '../runs/follow.ts'
import { reportExport } from '../runs/report-export.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import { findRun, type FoundChanges, workflowIdOf } from '../runs/find-run.ts'
import { type HeldUp, heldUpByRun } from '../runs/held-up.ts'
import { describeRunWorkers, findRunWorkers } from '../runs/run-workers.ts'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { describeBreaker } from '../../core/runs/view/breaker.ts'
import { countLabels, places } from '../../core/runs/view/counts.ts'
import { formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { toTablesText } from '../../core/runs/view/text.ts'
import { toQuestion } from '../runs/question.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { exitCodes, RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'
import { tellIfSlow } from '../terminal/tell-if-slow.ts'
import { connector } from '../../core/runs/view/shell.ts'

/**
 * The deadline in ms: a live worker answers in milliseconds, or in a second or two if it must replay a long
 * history.
 */
const answerWithinMs = 5_000

export function configureShow(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'workflow id or name of the run').action(async (name: string) => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    const id = await workflowIdOf({ client, run: name })
    const found = await findRun({ client, run: id })
    if (found.type !== 'export') return await showChanges({ ...found, name, client, settings, terminal })
    const { handle, description } = found
    const status = description.status.name.toLowerCase()
    const { heldUp, ...workers } = await findRunWorkers({ description, settings })
    const progress = await ask({ client, terminal, query: () => handle.query<ExportProgress>('status') })
    const run = runOf({ name, id, newest: progress?.run })
    if (progress === undefined) {
      const message = 'No worker answers, so its progress is unknown.'
      const heldUpBy = toTexts(heldUp)
      const text = [`${run} is ${status}. ${message}`, ...heldUpBy, ...describeRunWorkers(workers)].join('\n')
      terminal.result({ document: { run, status, message, heldUpBy, ...workers }, text })
      return
    }
    const heldUpBy = toTexts([...heldUp, ...heldUpByRun(progress.troubles)])
    const rows = progress.resources.map(({ resource, state, records, reason }) => [
      resource,
      state,
      records === undefined ? '' : String(records),
      reason ?? '',
    ])
    const table = formatTable({ head: ['resource', 'state', 'records', ''], rows })
    terminal.result({
      document: { run, status, ...progress, heldUpBy, ...workers },
      text: [
        `${run} is ${status}, ${progress.phase}`,
        ...heldUpBy,
        table,
        ...describeRunWorkers(workers),
        progress.summary,
      ]
        .filter(Boolean)
        .join('\n'),
    })
  })
  addExamples(command, 'inspect', { 'run show export-all-1f0c2b7a90': 'phase and counts of a run' })
}

export function configureWatch(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'workflow id of the run').action(async (run: string) => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    // Ctrl-C ends only the watching; `connector run stop` stops the run.
    const detach = () => {
      terminal.note(`The run ${run} continues.`)
      process.exit(exitCodes.failed)
    }
    using _interrupt = onInterrupt({ first: detach, second: detach })
    const found = await findRun({ client, run })
    if (found.type !== 'export') {
      const session = { client, lost: new AbortController().signal }
      const { followImport, followRecovery } = await import('../runs/follow-changes.ts')
      if (found.type === 'import') await followImport({ session, ...found, terminal, settings })
      else await followRecovery({ session, ...found, terminal, settings })
      return
    }
    const report = await followExport({ client, handle: found.handle, terminal })
    await reportExport({ report, terminal })
  })
  addExamples(command, 'run', {
    'run watch export-all-1f0c2b7a90': 'Ctrl-C stops watching; the run continues',
  })
}

async function showChanges({
  client,
  settings,
  type,
  handle,
  description,
  terminal,
  name,
}: FoundChanges & {
  client: Client
  settings: Settings
  terminal: Terminal
  name: string
}) {
  const status = description.status.name.toLowerCase()
  const { heldUp, ...workers } = await findRunWorkers({ description, settings })
  const query = () => handle.query<WriteProgress & { run?: string; summary?: string }>('status')
  const progress = await ask({ client, terminal, query })
  const run = runOf({ name, id: handle.workflowId, newest: progress?.run })
  const { phase, counts, summary = '' } = progress ?? {}
  const state = phase ?? 'no worker answers'
  const rows = places.flatMap((place) => {
    const count = counts?.[place] ?? 0
    return count === 0 ? [] : [[countLabels[place], count]]
  })
  const unit = type === 'import' ? 'rows' : 'subscriptions'
  // Before the first segment, what is staged says what the run would do.
  const table =
    rows.length > 0
      ? formatTable({ head: ['outcome', unit], rows })
      : toTablesText(progress?.staged?.tables ?? [])
  const question = progress?.waitingFor && toQuestion({ ...progress.waitingFor, run })
  const failed = type === 'import' ? 'rows failed' : 'resumes fell back'
  const breakers = (progress?.openBreakers ?? []).map(
    (open) => `The breaker is open: ${describeBreaker(open, failed, formatLocalTime)}.`,
  )
  const heldUpBy = toTexts([...heldUp, ...heldUpByRun(progress?.troubles)])
  const first = [`${run} is ${status}, ${state}`, ...heldUpBy, ...breakers]
  const text = [...first, table, question ?? '', ...describeRunWorkers(workers), summary]
    .filter((line) => line !== '')
    .join('\n')
  const document = { run, status, state, ...progress, ...(question && { question }), heldUpBy, ...workers }
  terminal.result({ document, text })
}

/** Each once: several steps mostly have the same trouble. */
const toTexts = (all: readonly HeldUp[]): string[] => [
  ...new Map(all.toReversed().map(({ key, text }) => [key, text])).values(),
]

/** Checks that a name means the newest run of its workflow id: Temporal knows no other. */
function runOf({ name, id, newest = id }: { name: string; id: string; newest?: string | undefined }): string {
  if (name !== id && name !== newest)
    throw new RefusedError(`The newest run of ${id} is ${newest}; Temporal no longer knows ${name}.`, {
      hint: `\`${connector`run report ${name}`}\` shows how it ended.`,
    })
  return newest
}

/** Asks the worker: queries need one, even for a run that has ended. Undefined if none answers. */
async function ask<T>(of: { client: Client; terminal: Terminal; query: () => Promise<T> }) {
  const { client, terminal, query } = of
  const line = 'Waiting for the worker ...'
  const work = client.withDeadline(Date.now() + answerWithinMs, query)
  return await tellIfSlow({ terminal, line, work }).catch(unlessSilent)
}

function unlessSilent(error: unknown): undefined {
  if (!(error instanceof ServiceError)) throw error
}
