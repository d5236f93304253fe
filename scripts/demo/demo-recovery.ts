import type { DemoContext } from './demo-context.ts'
import type { RecoveryInput } from '../../core/recoveries/input.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import { followRecovery } from '../runs/follow-changes.ts'
import { startRecovery } from '../runs/run-recovery.ts'
import { stopOnInterrupt } from '../runs/run-to-end.ts'

const broken = 60
/** The number of subscriptions whose cards are always declined, so that they need a person. */
const stuck = 3
const resume = 'POST /subscriptions/{id}/resume/'

export const demoRecovery: RecoveryInput = {
  reasons: ['gateway_issue'],
  approval: false,
  attempts: 2,
  firstWait: '1s',
  verifyAfter: '500ms',
  // Each demo is a new incident, so the resumes of an earlier demo must not defer it.
  coolDown: 0,
}

/** Breaks subscriptions as a gateway failure would, and recovers them. True if the service agrees with the report. */
export async function runDemoRecovery({
  run,
  sandbox,
  session,
  settings,
  terminal,
}: DemoContext & { run: string }): Promise<boolean> {
  const ids = breakGateway(sandbox)
  const hopeless = ids.slice(0, stuck)
  sandbox.control.addFault({ fault: { kind: 'fallBack', on: resume, ids: hopeless } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'done', on: resume, requests: [9] } })
  const { handle } = await startRecovery({ settings, session, run, input: demoRecovery })
  const stopNote = 'nothing more is resumed'
  using _interrupt = stopOnInterrupt({ session, handle, terminal, stopNote })
  terminal.note(
    `A payment gateway failed, so ${broken} more subscriptions need attention. It works again, except for ${stuck} cards. A recovery resumes them:`,
  )
  const { outcomes, counts } = await followRecovery({ session, handle, terminal, settings })
  const active = ids.filter((id) => statusOf(sandbox, id) === 'active').length
  terminal.note(
    `In the sandbox, ${active} of the ${broken} are active, and ${broken - active} still need attention.`,
  )
  return active === broken - stuck && outcomes['attemptsUsedUp'] === stuck && counts.unknown === 0
}

/** Puts the first active subscriptions into the state that a gateway failure leaves. */
function breakGateway(sandbox: Sandbox): string[] {
  const all = sandbox.control.ids({ resource: 'subscriptions' }).map(String)
  const ids = all.filter((id) => statusOf(sandbox, id) === 'active').slice(0, broken)
  const fields = {
    status: 'needs_attention',
    needs_attention: new Date().toISOString(),
    needs_attention_reason: 'gateway_issue',
  }
  for (const id of ids) sandbox.control.update({ resource: 'subscriptions', id, fields })
  return ids
}

const statusOf = (sandbox: Sandbox, id: string): unknown =>
  sandbox.control.get({ resource: 'subscriptions', id })?.status
