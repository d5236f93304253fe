import type { ExportHandle } from './show-export.ts'
import { ServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { ExportReport } from '../../core/exports/report.ts'
import { showExport } from './show-export.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

/** Temporal went away while a run was followed; the run itself is safe in its database. */
export class TemporalLostError extends Error {
  override readonly name = 'TemporalLostError'
  readonly hint: string
  constructor(options: { run: string; cause: unknown }) {
    super('Temporal does not answer any more.', { cause: options.cause })
    this.hint = `The run goes on when Temporal and the worker are back. Follow it with: ${shell`connector watch ${options.run}`}`
  }
}

/** Ctrl-C asks the run of this command to stop cleanly; a second one lets go of it. */
export function stopOnInterrupt(options: {
  handle: ExportHandle
  terminal: Terminal
  letGo: () => void | Promise<void>
}): Disposable {
  const { handle, terminal, letGo } = options
  return onInterrupt({
    async first() {
      terminal.note('Stopping: what was read is kept. Ctrl-C again leaves it.')
      await handle.signal('stop').catch(unlessEnded)
    },
    second: letGo,
  })
}

/**
 * Shows a run's progress until it ends, and gives its report. Throws what the run failed with, TemporalLostError, or
 * a cancellation where `gone` is aborted.
 */
export async function followExport(options: {
  client: Client
  handle: ExportHandle
  terminal: Terminal
  gone?: AbortSignal
}): Promise<ExportReport> {
  const { client, handle, terminal, gone } = options
  const ended = new AbortController()
  const signal = gone === undefined ? ended.signal : AbortSignal.any([ended.signal, gone])
  const showing = showExport({ client, handle, terminal, signal })
  try {
    return await client.withAbortSignal(signal, () => handle.result())
  } catch (cause) {
    if (!(cause instanceof ServiceError) || gone?.aborted === true) throw cause
    throw new TemporalLostError({ run: handle.workflowId, cause })
  } finally {
    ended.abort()
    await showing
  }
}

/** The run was quicker than the person. */
function unlessEnded(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error
}
