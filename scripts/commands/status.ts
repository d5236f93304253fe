import { ServiceError, type Client } from '@temporalio/client'
import type { Command } from 'commander'
import type { ExportProgress } from '../../workflows/export-view.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import { findChanges, findRun, workflowIdOf } from '../runs/find-run.ts'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { formatTable } from '../../core/runs/view/format.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

/** A worker that lives answers in milliseconds, one that reads a long history anew in a second or two. */
const answerWithinMs = 5_000

export function configure(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'the workflow id or the name of the run').action(async (name: string) => {
    await using client = await openClient(processSettings())
    const id = await workflowIdOf({ client, run: name })
    const ofChanges = await findChanges({ client, run: id })
    if (ofChanges !== undefined) return await tellChanges({ ...ofChanges, name, client, terminal })
    const { handle, description } = await findRun({ client, run: id })
    const status = description.status.name.toLowerCase()
    // The query is answered by a worker, also for a run that has ended.
    const progress = await client
      .withDeadline(Date.now() + answerWithinMs, () => handle.query<ExportProgress>('status'))
      .catch(unlessSilent)
    const run = runOf({ name, id, newest: progress?.run })
    if (progress === undefined) {
      const says = 'No worker answers, so where it is can not be told.'
      terminal.result({ document: { run, status, says }, text: `${run} is ${status}. ${says}` })
      return
    }
    const rows = progress.resources.map(({ resource, state, records, reason }) => [
      resource,
      state,
      records === undefined ? '' : String(records),
      reason ?? '',
    ])
    const table = formatTable({ head: ['resource', 'state', 'records', ''], rows })
    terminal.result({
      document: { run, status, ...progress },
      text: `${run} is ${status}, ${progress.phase}\n${table}\n${progress.summary ?? ''}`.trim(),
    })
  })
}

async function tellChanges({
  client,
  type,
  handle,
  description,
  terminal,
  name,
}: NonNullable<Awaited<ReturnType<typeof findChanges>>> & {
  client: Client
  terminal: Terminal
  name: string
}) {
  const status = description.status.name.toLowerCase()
  const progress = await client
    .withDeadline(Date.now() + answerWithinMs, () =>
      handle.query<WriteProgress & { run?: string; summary?: string }>('status'),
    )
    .catch(unlessSilent)
  const run = runOf({ name, id: handle.workflowId, newest: progress?.run })
  const { phase, counts, summary = '' } = progress ?? {}
  const says = phase ?? 'no worker answers'
  const rows = Object.entries({ ...counts }).filter(([, count]) => count > 0)
  const table =
    rows.length === 0
      ? ''
      : formatTable({ head: ['outcome', type === 'import' ? 'rows' : 'subscriptions'], rows })
  const text = [`${run} is ${status}, ${says}`, table, summary].filter((line) => line !== '').join('\n')
  terminal.result({ document: { run, status, says, ...progress }, text })
}

/** Temporal tells of the newest run of a workflow id only. */
function runOf({ name, id, newest = id }: { name: string; id: string; newest?: string | undefined }): string {
  if (name !== id && name !== newest)
    throw new RefusedError(`The newest run of ${id} is ${newest}; no worker can tell of ${name}.`, {
      hint: `\`${shell`connector report ${name}`}\` shows how it ended.`,
    })
  return newest
}

function unlessSilent(error: unknown): undefined {
  if (!(error instanceof ServiceError)) throw error
}
