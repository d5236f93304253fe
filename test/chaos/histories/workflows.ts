import { setTimeout as wait } from 'node:timers/promises'
import type { ImportResult } from '../../../core/imports/view.ts'
import type { ImportPlan } from '../../../core/imports/plan.ts'
import type { RecoveryReport } from '../../../core/recoveries/view.ts'
import type { RecoveryPlan } from '../../../core/recoveries/plan.ts'
import type { SendStep } from '../../../core/changes/send/send-for.ts'
import type { ImportInput } from '../../../core/imports/input.ts'
import type { RecoveryInput } from '../../../core/recoveries/input.ts'
import { type Run, StepFailed } from './run.ts'

/** The steps of importFile and recoverSubscriptions in their order, without the questions to people. */

/** What one segment hands on to the next. */
interface Thread {
  breakers: SendStep['breakers']
  claims: number
}

interface Sending {
  run: Run
  step: 'sendImport' | 'sendRecovery'
  /** What a step gets beside what the segments hand on. */
  input: object
  seconds: number
  thread: Thread
}

/** Undefined where the run was stopped. */
async function sendSome(sending: Sending, more: object = {}): Promise<SendStep | undefined> {
  const { run, step, input, seconds, thread } = sending
  for (;;) {
    const sent = await run.untilStopped(step, { ...input, ...thread, seconds, ...more })
    if (sent === undefined) return undefined
    Object.assign(thread, { breakers: sent.breakers, claims: sent.claims })
    const isOver = sent.ended === 'breaker' && sent.givenUp.length > 0 && sent.nextAt === undefined
    if (isOver || ['finished', 'maxChanges', 'maxFailures'].includes(sent.ended)) return sent
    if (sent.nextAt !== undefined) await wait(Math.min(1_000, Math.max(1, sent.nextAt - Date.now())))
  }
}

const refOf = ({ run, identity }: { run: string; identity: object }) => ({ run, identity })

interface End {
  how: 'finished' | 'stopped' | 'failed' | 'refused'
  giveUp: boolean
  why?: string
}

/** @throws {StepFailed} after its report, where there is one */
export async function importFile(
  run: Run,
  { input, seconds }: { input: ImportInput; seconds: number },
): Promise<ImportResult | undefined> {
  const plan = await run.untilStopped('openImport', input)
  if (plan === undefined) return undefined
  const close = async (end: End) => (await run.toTheEnd('closeImport', { ...refOf(plan), ...end })).result
  try {
    return await close(await sendAll(run, { plan, seconds }))
  } catch (error) {
    if (error instanceof StepFailed) await close({ how: 'failed', giveUp: false, why: error.message })
    throw error
  }
}

async function sendAll(run: Run, { plan, seconds }: { plan: ImportPlan; seconds: number }): Promise<End> {
  const { limits } = plan
  const stopped = { how: 'stopped', giveUp: false, why: 'stopped' } as const
  const staged = await run.untilStopped('stageImport', refOf(plan))
  if (staged === undefined) return stopped
  const thread = { breakers: {}, claims: 0 }
  const sending = { run, step: 'sendImport', input: { ...refOf(plan), limits }, seconds, thread } as const
  if (staged.canary.length > 0) {
    const step = await sendSome(sending, { rows: staged.canary })
    if (step === undefined) return stopped
    if (step.failedCanaries.length > 0) return { how: 'finished', giveUp: true, why: 'the canary failed' }
  }
  const step = await sendSome(sending)
  if (step === undefined) return stopped
  if (step.ended !== 'finished') return { how: 'finished', giveUp: true, why: step.ended }
  if (plan.kind !== 'retentions') return { how: 'finished', giveUp: false }
  const audit = await run.untilStopped('auditImport', { ...refOf(plan), limits })
  return audit === undefined ? stopped : { how: 'finished', giveUp: false }
}

/** @throws {StepFailed} after its report, where there is one */
export async function recoverSubscriptions(
  run: Run,
  { input, seconds }: { input: RecoveryInput; seconds: number },
): Promise<RecoveryReport | undefined> {
  const { firstRunId } = run
  const plan = await run.untilStopped('openRecovery', { input, firstRunId })
  if (plan === undefined) return undefined
  const close = async (end: Omit<End, 'giveUp'>) =>
    (await run.toTheEnd('closeRecovery', { ...refOf(plan), ...end })).result
  try {
    return await close(await resumeAll(run, { plan, seconds }))
  } catch (error) {
    if (error instanceof StepFailed) await close({ how: 'failed', why: error.message })
    throw error
  }
}

async function resumeAll(
  run: Run,
  { plan, seconds }: { plan: RecoveryPlan; seconds: number },
): Promise<Omit<End, 'giveUp'>> {
  const { limits } = plan
  const stopped = { how: 'stopped', why: 'stopped' } as const
  const snapshot = await run.untilStopped('snapshotRecovery', { ...refOf(plan), limits })
  const thread = { breakers: {}, claims: 0 }
  const sending = { run, step: 'sendRecovery', input: { ...refOf(plan), limits }, seconds, thread } as const
  const finish = async () => {
    if (snapshot === undefined) return undefined
    for (let rows: readonly number[] = snapshot.canary; rows.length > 0;) {
      const step = await sendSome(sending, { rows })
      if (step === undefined) return undefined
      const { failedCanaries: reasons, nextCanary = [] } = step
      const why = 'the canary failed'
      if (reasons.length > 0) await run.toTheEnd('skipRemaining', { ...refOf(plan), reasons, why })
      rows = nextCanary
    }
    return await sendSome(sending)
  }
  if ((await finish()) !== undefined) return { how: 'finished' }
  for (let unknown = 1; unknown > 0;) {
    const input = { ...refOf(plan), limits, seconds: 60, breakers: {}, claims: 0, lookupsOnly: true }
    const step = await run.toTheEnd('sendRecovery', input)
    unknown = step.ended === 'finished' ? 0 : step.counts.unknown
    if (step.nextAt !== undefined) await wait(Math.min(1_000, Math.max(1, step.nextAt - Date.now())))
  }
  return stopped
}
