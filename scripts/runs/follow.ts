import { type Client, ServiceError } from '@temporalio/client'
import type { ExportReport } from '../../core/exports/report.ts'
import { connector } from '../../core/runs/view/shell.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { ExportHandle } from './find-run.ts'
import { observeExport, type Observe, showRun } from './show-run.ts'

/** The Temporal server was lost while a run was followed; the run itself is safe in its database. */
export class TemporalLostError extends Error {
  override readonly name = 'TemporalLostError'
  readonly hint: string
  constructor({ run, cause }: { run: string; cause: unknown }) {
    super('Temporal does not answer any more.', { cause })
    this.hint = `The run continues when Temporal and the worker are back. Follow it with: ${connector`run watch ${run}`}`
  }
}

/**
 * Shows the progress of a run until it ends and returns its result.
 *
 * @throws the failure of the run, TemporalLostError, or a cancellation if `lost` is aborted
 */
export async function follow<Result>(options: {
  client: Client
  lost: AbortSignal
  handle: { workflowId: string; result(): Promise<Result> }
  terminal: Terminal
  observe: (signal: AbortSignal) => Observe
}): Promise<Result> {
  const { client, lost, handle, terminal, observe } = options
  const ended = new AbortController()
  const signal = AbortSignal.any([ended.signal, lost])
  const showing = showRun({ client, observe: observe(signal), terminal, signal })
  try {
    return await client.withAbortSignal(signal, () => handle.result())
  } catch (cause) {
    if (!(cause instanceof ServiceError) || lost.aborted) throw cause
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
  lost = new AbortController().signal,
}: {
  client: Client
  handle: ExportHandle
  terminal: Terminal
  lost?: AbortSignal
}): Promise<ExportReport> =>
  follow({ client, lost, handle, terminal, observe: () => observeExport({ handle }) })
