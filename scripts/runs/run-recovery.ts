import type { RecoveryHandle } from './recovery-folder.ts'
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import type { RecoveryReport } from '../../core/recoveries/view.ts'
import type { RecoveryInput } from '../../core/recoveries/input.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { recoverSubscriptions } from '../../workflows/recover-subscriptions.ts'
import type { RecoveryProgress } from '../../workflows/recovery-details.ts'
import { followChanges, stopChangesOnInterrupt } from './follow-changes.ts'
import { hashInput } from '../input-hash.ts'
import { openLocalSession } from '../session/local-session.ts'
import type { RecoveryOrder } from '../commands/recover.ts'
import { answerRecovery } from './ask-recovery.ts'
import { reportRecovery } from './report-recovery.ts'
import { unprintedNote, unprintedReport } from './unprinted-report.ts'
import { openSession, resumeOrThrow, type Session } from '../session/session.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

interface Call {
  settings: Settings
  terminal: Terminal
  order: RecoveryOrder
}

/** Recovers subscriptions, or resumes the unfinished recovery of the same input, and tells how it ends. */
export async function runRecovery(call: Call): Promise<void> {
  const { settings, terminal, order } = call
  const input = toInput(call)
  const run = nameRecovery({ settings, input })
  const unprinted = unprintedReport({ dataDir: settings.dataDir, key: run })
  const find = (client: Session['client']) => (order.detach ? undefined : unprinted.find(client))
  for (;;) {
    const mayWrite = (other: string) => other === run
    const session = await (order.local
      ? openLocalSession({ settings, terminal, mayWrite })
      : openSession({ settings, terminal }))
    try {
      const { identity } = session
      terminal.identity({ workspace: identity.workspace, testMode: identity.mode === 'test' })
      const ended = await find(session.client)
      if (ended !== undefined) terminal.note(unprintedNote(ended))
      const handle =
        ended === undefined
          ? await startRecovery({ ...call, session, run, input })
          : session.client.workflow.getHandle<typeof recoverSubscriptions>(ended)
      if (order.detach)
        return terminal.result({
          document: { run },
          text: `Follow it with: ${shell`connector watch ${run}`}`,
        })
      await unprinted.follows(run)
      const says = 'nothing more is resumed, and what became of the last ones is waited for'
      using _interrupt = stopChangesOnInterrupt({ session, handle, terminal, says })
      await followRecovery({ session, handle, terminal, settings })
      return await unprinted.printed()
    } catch (error) {
      resumeOrThrow({ session, error, terminal })
    } finally {
      await session.close()
    }
  }
}

/** Without a terminal it goes on by itself, as schedules do; on one it asks, unless --yes says so already. */
function toInput({ order, terminal }: Call): RecoveryInput {
  const isThere = terminal.isInteractive && !order.detach
  const isAsked = isThere && !order.yes
  return {
    ...order.input,
    approval: order.waitForApproval || isAsked,
    attended: order.waitForApproval || isThere,
  }
}

/** Starts the run, or finds it where it has been started already. */
export async function startRecovery({
  settings,
  terminal,
  session,
  run,
  input,
}: Pick<Call, 'settings' | 'terminal'> & {
  session: Session
  run: string
  input: RecoveryInput
}): Promise<RecoveryHandle> {
  const { client, identity } = session
  try {
    const handle = await client.workflow.start<typeof recoverSubscriptions>('recoverSubscriptions', {
      workflowId: run,
      taskQueue: settings.taskQueue,
      args: [{ ...input, identity }],
      workflowIdConflictPolicy: 'FAIL',
      staticSummary: `resume ${input.reasons?.join(', ') ?? 'what a resume can mend'}`,
    })
    terminal.note(`Run ${run}`)
    return handle
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    terminal.note(`Goes on with the unfinished run ${run}`)
    return client.workflow.getHandle<typeof recoverSubscriptions>(run)
  }
}

/** Shows a recovery until it ends, answers what it asks, and tells its report. */
export async function followRecovery(options: {
  session: Pick<Session, 'client' | 'gone'>
  handle: RecoveryHandle
  terminal: Terminal
  settings: Settings
}): Promise<RecoveryReport> {
  const { handle, terminal, settings } = options
  const run = await followChanges<RecoveryProgress>({
    ...options,
    unit: 'subscriptions',
    nameOf: () => 'recovery',
    onQuestion: (progress, signal) => answerRecovery({ handle, progress, terminal, signal }),
  })
  return await reportRecovery({ run, terminal, settings })
}

/**
 * The workflow id of a recovery of this input: the same for the same command, so that Temporal itself keeps two that
 * are started together from becoming two runs. Once it has ended, the next run under this id is called `<id>.2`.
 */
export function nameRecovery({ settings, input }: { settings: Settings; input: RecoveryInput }): string {
  const { workspace, testMode } = settings.billing
  return `recover-${hashInput({ workspace, testMode, input }).slice(0, 10)}`
}
