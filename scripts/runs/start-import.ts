import { WorkflowExecutionAlreadyStartedError, type WorkflowHandle } from '@temporalio/client'
import type { ImportInput } from '../../core/imports/input.ts'
import { importKinds } from '../../core/imports/kinds.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { importFile } from '../../workflows/import-file.ts'
import type { HandedIn } from './import-folder.ts'
import type { ImportOrder } from './import-request.ts'
import type { Session } from '../session/session.ts'
import type { Terminal } from '../terminal/terminal.ts'

export type ImportHandle = WorkflowHandle<typeof importFile>

/** Starts the run of what was handed in, or finds it where it has been started already. */
export async function startImport({
  settings,
  terminal,
  order,
  session,
  handed,
}: {
  settings: Settings
  terminal: Terminal
  order: ImportOrder
  session: Session
  handed: HandedIn
}): Promise<ImportHandle> {
  const { client } = session
  const { run } = handed
  try {
    const handle = await client.workflow.start<typeof importFile>('importFile', {
      workflowId: run,
      taskQueue: settings.taskQueue,
      args: [toInput({ order, session, handed, terminal })],
      staticSummary: `${order.kind} from a file`,
    })
    terminal.note(handed.before === 'unfinished' ? `Goes on with the unfinished run ${run}` : `Run ${run}`)
    return handle
  } catch (error) {
    await handed.remove()
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    terminal.note(`Goes on with the unfinished run ${run}`)
    return client.workflow.getHandle<typeof importFile>(run)
  }
}

function toInput({
  order,
  session,
  handed,
  terminal,
}: {
  order: ImportOrder
  session: Session
  handed: HandedIn
  terminal: Terminal
}): ImportInput {
  const { kind, columns, dryRun, onInvalid, done, existing, sendAgain, expect, waitForApproval } = order
  const { canary, maxFailures, requestsPerSecond } = order
  const { isInteractive } = terminal
  const isAsked = isInteractive && !order.yes && session.identity.mode === 'live' && !order.detach
  return {
    kind,
    ...handed.input,
    ...(columns && { columns }),
    dryRun,
    onInvalid,
    done,
    existing,
    ...(sendAgain.length > 0 && { sendAgain }),
    ...(expect.rows !== undefined && { expectRows: expect.rows }),
    ...(expect.totals !== undefined && { expectTotals: { ...expect.totals } }),
    ...(canary !== undefined && { canary }),
    ...(maxFailures !== undefined && { maxFailures }),
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
    approval: waitForApproval,
    confirmCanary: isAsked && importKinds[kind].does !== 'update',
    attended: isInteractive && !order.detach,
    identity: session.identity,
  }
}
