import { ApplicationFailure, continueAsNew, workflowInfo } from '@temporalio/workflow'
import type { RecoveryInput, RecoveryPlan } from '../core/recoveries/input.ts'
import type { RecoveryReport } from '../core/recoveries/view.ts'
import { canaryFailed } from '../core/runs/view/counts.ts'
import { connector } from '../core/runs/view/shell.ts'
import { refOf } from './run/run-ref.ts'
import { type Continued, steps, type WriteJob, type WriteRun } from './write-run/job.ts'
import type { RecoveryProgress, StagedRecovery } from './write-run/progress.ts'
import { toRecoveryText } from './write-run/text.ts'
import { writeRun } from './write-run/write-run.ts'

type RecoveryJob = WriteJob<RecoveryPlan, StagedRecovery, RecoveryReport, RecoveryProgress>
type RecoveryRun = WriteRun<RecoveryPlan, RecoveryProgress>
type Onward = Continued<RecoveryPlan, StagedRecovery, RecoveryProgress>

/** The largest share added to a run's configured waits, so that changes due soon after are included. */
const waitShare = 0.1
const longestExtraWaitMs = 60_000

/**
 * Resumes subscriptions that need attention, within limits: reads the list first, tries a few of each reason as a
 * canary, then resumes the rest. Looks up the result of each, retries those that fell back after growing waits, and
 * stops by itself when it does harm. The report has the outcome of each and those that need a person.
 */
export async function recoverSubscriptions(
  input?: RecoveryInput | { onward: Onward } | null,
): Promise<RecoveryReport> {
  refuseCron()
  const continued = onwardIn(input)
  return await writeRun<RecoveryPlan, StagedRecovery, RecoveryReport, RecoveryProgress>({
    name: 'recovery',
    input: input ?? {},
    progress: continued?.progress ?? { phase: 'checking', limits: {}, failedCanaries: [] },
    describe: toRecoveryText,
    resourcesOf: () => ['subscriptions'],
    stage: { phase: 'reading the list', isRefusal: false },
    questions: ({ approval }) => (approval ? { approval: {} } : {}),
    leastWaitMs: ({ firstWait, verifyAfter }) =>
      Math.min(waitShare * 1_000 * Math.min(firstWait, verifyAfter), longestExtraWaitMs),
    onCanary: skipFailed,
    skipGivenUp: skipReasons,
    onBound: skipBeyond,
    looksUpAfterStop: true,
    failure: ({ why, result: { counts } }) => ({
      type: 'RecoveryFailed',
      message: `${why.replace(/[.]?$/, '.')} ${counts.done} recovered, ${counts.unknown} unknown: the next recovery looks them up first.`,
    }),
    parkedCommand: ({ run }) => connector`run report ${run}`,
    attention: ({ plan: { notifyAbove = Infinity }, staged: { candidates }, result }) => {
      if (candidates <= notifyAbove) return undefined
      const summary = `${candidates} subscriptions need attention, more than ${notifyAbove}; ${result.summary}`
      return { kind: 'attention', summary, command: connector`recover` }
    },
    continued,
    continueAs: (onward) => continueAsNew<typeof recoverSubscriptions>({ onward }),
  })
}

/** Refuses a cron: to the ledger, all executions of a cron are one run, so the second execution would do nothing. */
function refuseCron(): void {
  if (workflowInfo().cronSchedule === undefined) return
  const instead = `use a schedule (${connector`schedule apply`}, or Schedules in the Temporal UI).`
  throw ApplicationFailure.nonRetryable(
    `A recovery can't be started with a cron schedule: ${instead}`,
    'InvalidInput',
  )
}

/** Only an execution that continues another one has `onward`; the public input has no such field. */
function onwardIn(input: unknown): Onward | undefined {
  if (workflowInfo().continuedFromExecutionRunId === undefined) return undefined
  return (input as { onward?: Onward } | null | undefined)?.onward
}

/** Skips the reasons whose canary failed; the others continue. */
const skipFailed: RecoveryJob['onCanary'] = async (run, { failed }) => {
  const { failedCanaries } = run.progress
  const keys = failed.filter((reason) => !failedCanaries.includes(reason))
  if (keys.length > 0) await skipReasons(run, { keys, why: canaryFailed })
  return undefined
}

async function skipReasons(
  { plan, progress, show }: Pick<RecoveryRun, 'plan' | 'progress' | 'show'>,
  { keys, why }: { keys: readonly string[]; why: string },
): Promise<void> {
  progress.failedCanaries = [...progress.failedCanaries, ...keys]
  show()
  const summary = `skip ${keys.join(', ')}`
  await steps.skipRemaining.executeWithOptions({ summary }, [{ ...refOf(plan), keys, why }])
}

/** Skips the subscriptions beyond the limit; those already resumed are followed to their end. */
const skipBeyond: RecoveryJob['onBound'] = async ({ plan, progress }) => {
  const why = `only ${progress.limits.maxChanges} are resumed (maxChanges)`
  const summary = 'skip what is beyond the bound'
  await steps.skipRemaining.executeWithOptions({ summary }, [{ ...refOf(plan), why }])
  return 'continue'
}
