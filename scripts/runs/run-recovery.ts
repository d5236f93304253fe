import type { RecoveryInput } from '../../core/recoveries/input.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { recoverSubscriptions } from '../../workflows/recover-subscriptions.ts'
import type { Session } from '../session/session.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { attach, type Attached, nameRun } from './attach.ts'
import { runToEnd } from './run-to-end.ts'

/** A recovery as the command line requests it, parsed and checked. */
export interface RecoveryOrder {
  input: RecoveryInput
  yes: boolean
  local: boolean
  detach: boolean
}

interface Call {
  settings: Settings
  terminal: Terminal
  order: RecoveryOrder
}

/** Recovers subscriptions, or resumes the unfinished recovery of the same input, and follows it to its end. */
export async function runRecovery(call: Call): Promise<void> {
  const { settings, terminal, order } = call
  const { local, detach } = order
  const input = toInput(call)
  const run = nameRecovery({ settings, input })
  await runToEnd<typeof recoverSubscriptions>({
    settings,
    terminal,
    local,
    detach,
    writes: run,
    start: (session) => startRecovery({ settings, session, run, input }),
    // Loaded late: with --detach, nothing follows.
    follow: async (following) => (await import('./follow-changes.ts')).followRecovery(following),
    stopNote: 'nothing more is resumed; the results of the last ones are awaited',
  })
}

/** Without a terminal, the run asks for no approval, like scheduled runs; with one it asks, unless --yes was given. */
function toInput({ order: { input, yes, detach }, terminal }: Call): RecoveryInput {
  const isThere = terminal.isInteractive && !detach
  const { approval: isWanted = false } = input
  return { ...input, approval: isWanted || (isThere && !yes), attended: isWanted || isThere }
}

export const startRecovery = ({
  settings: { taskQueue },
  session: { client, identity },
  run,
  input,
}: {
  settings: Settings
  session: Session
  run: string
  input: RecoveryInput
}): Promise<Attached<typeof recoverSubscriptions>> =>
  attach({
    client,
    taskQueue,
    workflow: 'recoverSubscriptions',
    workflowId: run,
    input: { ...input, identity },
    summary: `resume ${input.reasons?.join(', ') ?? 'what a resume can fix'}`,
  })

export const nameRecovery = (of: { settings: Settings; input: RecoveryInput }): string =>
  nameRun({ what: 'recover', ...of })
