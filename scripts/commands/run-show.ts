import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Client, QueryNotRegisteredError, ServiceError } from '@temporalio/client'
import type { Command } from 'commander'
import type { ExportProgress } from '../../workflows/export-view.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import { followRun } from '../runs/follow.ts'
import { breakerLines, withHeartbeats } from '../runs/show-run.ts'
import { onInterrupt, tellIfSlow, type Terminal } from '../terminal/terminal.ts'
import { findRun, unresumable, workflowIdOf } from '../runs/find-run.ts'
import { heldUp, heldUpByRun, toQuestion, toTexts } from '../runs/held-up.ts'
import { openClient } from '../session/session.ts'
import { addExamples, processSettings } from './options.ts'
import { countLabels, places } from '../../core/runs/view/counts.ts'
import { formatCount, formatTable } from '../../core/runs/view/format.ts'
import { toTablesText } from '../../core/runs/view/text.ts'
import { exitCodes, RefusedError } from '../terminal/failures.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { reportRun } from '../runs/report.ts'
import { newestRun } from '../runs/run-files.ts'

/**
 * The deadline in ms: a live worker answers in milliseconds, or in a second or two if it must replay a long
 * history.
 */
const answerWithinMs = 5_000

type Progress = ExportProgress | WriteProgress

export function configureShow(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'workflow id or name of the run').action(async (name: string) => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    const id = await workflowIdOf({ client, run: name })
    const { kind, handle, description } = await findRun({ client, run: id })
    const status = description.status.name.toLowerCase()
    const told = await ask({ client, terminal, run: id, query: () => handle.query<Progress>('status') })
    const progress = told && withHeartbeats(told, description)
    const run = runOf({ name, id, newest: progress?.run })
    const heldUpBy = toTexts([...heldUp(description), ...heldUpByRun(progress?.troubles)])
    if (progress === undefined) {
      const message = `No worker on the task queue ${description.taskQueue} answers, so its progress is unknown.`
      const text = [`${run} is ${status}. ${message}`, ...heldUpBy].join('\n')
      terminal.result({ document: { run, status, message, heldUpBy }, text })
      return
    }
    const isRead = 'resources' in progress
    const { lines, table, question } = isRead
      ? { lines: [], table: toListTable(progress), question: undefined }
      : describeChanges({ progress, run, isImport: kind === 'import' })
    const first = [`${run} is ${describePhase(status, progress)}`, ...heldUpBy, ...lines]
    const last = [table, question ?? '', progress.summary ?? '']
    terminal.result({
      document: { run, status, ...progress, ...(question && { question }), heldUpBy },
      text: [...first, ...last].filter((line) => line !== '').join('\n'),
    })
  })
  addExamples(command, 'inspect', { 'run show export-all-1f0c2b7a90': 'phase and counts of a run' })
}

/** Of a run in progress, its phase says more than Temporal's status. */
function describePhase(status: string, { phase }: Pick<Progress, 'phase'>): string {
  if (status !== 'running' || phase === 'ended') return status
  return phase === 'running' || phase === 'paused' || phase === 'stopping' ? phase : `running: ${phase}`
}

const toListTable = ({ resources }: ExportProgress): string => {
  if (resources.length === 0) return ''
  return formatTable({
    head: ['resource', 'state', 'records', ''],
    rows: resources.map(({ resource, state, records, reason }) => [
      resource,
      state,
      records === undefined ? '' : formatCount(records),
      reason ?? '',
    ]),
  })
}

function describeChanges(of: { progress: WriteProgress; run: string; isImport: boolean }) {
  const { progress, run, isImport } = of
  const { counts, staged, openBreakers = [] } = progress
  const rows = places.flatMap((place) => {
    const count = counts?.[place] ?? 0
    return count === 0 ? [] : [[countLabels[place], count]]
  })
  const unit = isImport ? 'rows' : 'subscriptions'
  return {
    lines: breakerLines(openBreakers, unit),
    // Before the first segment, what is staged says what the run would do.
    table:
      rows.length > 0 ? formatTable({ head: ['outcome', unit], rows }) : toTablesText(staged?.tables ?? []),
    question: toQuestion(progress, run),
  }
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
    const { kind, handle } = await findRun({ client, run })
    const session = { client, lost: new AbortController().signal }
    await followRun({ kind, session, handle, terminal, settings })
  })
  addExamples(command, 'run', {
    'run watch export-all-1f0c2b7a90': 'Ctrl-C stops watching; the run continues',
  })
}

/** Checks that a name means the newest run of its workflow id: Temporal knows no other. */
function runOf({ name, id, newest = id }: { name: string; id: string; newest?: string | undefined }): string {
  if (name !== id && name !== newest)
    throw new RefusedError(`The newest run of ${id} is ${newest}; Temporal no longer knows ${name}.`, {
      hint: `\`${connector`run report ${name}`}\` shows how it ended.`,
    })
  return newest
}

/** Asks the worker: queries need one, even for a run that has ended. Undefined if none answers. */
async function ask<T>(of: { client: Client; terminal: Terminal; run: string; query: () => Promise<T> }) {
  const { client, terminal, run, query } = of
  const line = 'Waiting for the worker ...'
  const work = client.withDeadline(Date.now() + answerWithinMs, query)
  return await tellIfSlow({ terminal, line, work }).catch((error: unknown) => {
    // Each run knows this query: what the worker's own failure says is Temporal's, with a code of its own.
    if (error instanceof QueryNotRegisteredError && error.message.includes('[TMPRL1100]'))
      throw unresumable(run, error)
    if (!(error instanceof ServiceError)) throw error
    return undefined
  })
}

/** The program of each platform that opens a file as a double click does. */
const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Opens the page of a run, or prints its path where no program opens it, such as on a server. */
export function configureOpen(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'name of the run, or a workflow id for its newest run')
    .action(async (name: string) => {
      const settings = processSettings()
      const run = await newestRun({ places: settings, run: name, terminal })
      const page = await reportRun({ run, terminal: { ...terminal, result: () => undefined }, settings })
      const [program, ...args] = openers[process.platform] ?? ['xdg-open']
      const child = spawn(program, [...args, page], { stdio: 'ignore', detached: true })
      const opened = await once(child, 'spawn').then(
        () => true,
        () => false,
      )
      child.unref()
      terminal.result({ document: { run, page, opened }, text: opened ? `Opened ${page}` : page })
      process.exitCode = exitCodes.proven
    })
  addExamples(command, 'inspect', { 'run open export-all-1f0c2b7a90': 'the page of a run in your browser' })
}

/** Shows a report from the data folder. Needs no Temporal, so it works long after a run has ended. */
export function configureReport(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'name of the run, or a workflow id for its newest run')
    .action(async (name: string) => {
      const settings = processSettings()
      const run = await newestRun({ places: settings, run: name, terminal })
      await reportRun({ run, terminal, settings })
    })
  addExamples(command, 'run', {
    'run report export-all-1f0c2b7a90': 'works without Temporal, also for old runs',
    'run report export-all-1f0c2b7a90 --json': 'the same for programs',
  })
}
