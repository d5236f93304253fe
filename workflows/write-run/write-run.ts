import {
  ApplicationFailure,
  CancellationScope,
  allHandlersFinished,
  condition,
  rootCause,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow'
import type { Opened } from '../../core/notifications/opened.ts'
import type { View } from '../../core/runs/view/view.ts'
import type { JobName, RunEnd } from '../../core/runs/run-notes.ts'
import { allowHeartbeats } from '../run/heartbeats.ts'
import { controlRun, stoppedBefore } from '../run/control.ts'
import { createNotifier } from '../run/notify.ts'
import { refOf } from '../run/run-ref.ts'
import { showTroubles } from '../run/troubles.ts'
import { createSearchAttributes } from '../run/search-attributes.ts'
import { rethrowBug } from '../run/unwrap-failure.ts'
import { toMarkdown } from '../../core/runs/view/markdown.ts'
import { type SendState, steps, type Working, type WriteJob, type WritePlan } from './job.ts'
import type { WriteResult } from './operator-state.ts'
import { registerOperatorHandlers } from './operator.ts'
import type { StagedChanges, WriteProgress } from './progress.ts'
import { lookUpRemaining, newSendState, sendRemaining, sendResolved, sendStaged } from './send-loop.ts'
import { texts } from './text.ts'
import { toLiveView } from './view.ts'

/**
 * Runs a job that writes to the service: opens its plan, stages every change before the first is sent, asks for
 * approval, sends each change once, reconciles those without an answer, proves the result if the job can, and
 * writes a report. The body is not cancellable: Request Cancellation means stop.
 */
export async function writeRun<
  Plan extends WritePlan,
  Staged extends StagedChanges,
  Result extends WriteResult,
  Progress extends WriteProgress<Staged>,
>(job: WriteJob<Plan, Staged, Result, Progress>): Promise<Result> {
  const { name, progress, continued } = job
  const text = texts[name]
  const attributes = createSearchAttributes()
  const notifier = createNotifier()
  const show = () => {
    // An ended run keeps the view of its report.
    if (progress.phase === 'ended') return
    setCurrentDetails(toMarkdown(toLiveView(progress, job.describe(progress))))
    // Makes runs that wait for a person searchable; the verdict is set at the end.
    attributes.set({ needsPerson: progress.waitingFor !== undefined })
  }
  const control = controlRun({
    text: text.control,
    paused: continued?.paused ?? false,
    onChange: (now) => {
      if (progress.phase !== 'ended')
        progress.phase = now.stopping ? 'stopping' : now.paused ? 'paused' : 'sending'
      show()
    },
  })
  showTroubles(progress, show)
  const operator = registerOperatorHandlers({ progress, show, control, notifier, text: text.operator })
  show()
  return CancellationScope.nonCancellable(async () => {
    const plan =
      continued?.plan ?? (await control.unlessStopped(() => open<Plan>(job)).catch(attributes.failUnopened))
    if (plan === undefined) throw stoppedBefore(text.stoppedWhileOpening)
    job.onPlan?.(plan)
    const { run, identity, limits } = plan
    if (continued === undefined)
      Object.assign(progress, { run, identity, limits: { ...limits, ...progress.limits } })
    operator.plan = plan
    if (!job.stage.isRefusal) notifier.allow(plan)
    attributes.allow(plan)
    allowHeartbeats(plan)
    attributes.set({ resources: job.resourcesOf(plan) })
    const working = { job, plan, progress, show, control, operator, notifier, attributes }
    return (await runPlan(working)) as Result
  }).catch(notifier.fail)
}

async function open<Plan extends WritePlan>({ name, input }: { name: JobName; input: unknown }) {
  const { firstExecutionRunId: firstRunId } = workflowInfo()
  const summary = texts[name].opening
  const plan = await steps.openRun.executeWithOptions({ summary }, [{ job: name, input, firstRunId }])
  return plan as unknown as Opened<Plan>
}

async function runPlan(run: Working): Promise<WriteResult> {
  const { job, plan, operator, notifier } = run
  const staged = job.continued?.staged ?? (await stage(run))
  notifier.allow(plan)
  const state = job.continued?.state ?? newSendState()
  for (let isBegun = job.continued !== undefined; ; isBegun = true) {
    // The update that came with the start: without it, there is nothing to send, and it would be proven twice.
    if (plan.onlyResolved === true) await condition(allHandlersFinished)
    const { resolved } = operator
    const end = await endOf(run, { staged, state, isBegun })
    // A row that was resolved in the meantime may have to be sent.
    const isOpen = plan.onlyResolved === true || (end.how === 'finished' && end.why === undefined)
    if (isOpen && !(await operator.close(resolved))) continue
    const result = await close(run, end, state.claims)
    await announce(run, { staged, result })
    return result
  }
}

/** Undefined if the run was stopped in the meantime. */
async function stage(run: Working): Promise<StagedChanges | undefined> {
  const { job, plan, progress, show, control } = run
  try {
    const staged = await control.unlessStopped(() => {
      progress.phase = job.stage.phase
      show()
      const summary = texts[job.name].staging
      const input = { ...refOf(plan), limits: progress.limits }
      return steps.stageRun.executeWithOptions({ summary }, [input])
    })
    if (staged !== undefined) progress.staged = staged
    show()
    return staged
  } catch (error) {
    return await fail(run, { how: job.stage.isRefusal ? 'refused' : 'failed', error })
  }
}

async function endOf(
  run: Working,
  options: {
    staged: StagedChanges | undefined
    state: SendState
    /** Whether approval was asked for, if it is required. */
    isBegun: boolean
  },
): Promise<RunEnd> {
  const { job, plan } = run
  const { staged, state, isBegun } = options
  const stopped: RunEnd = { how: 'stopped', why: texts[job.name].stopped }
  if (plan.dryRun) return staged === undefined ? stopped : { how: 'dryRun' }
  const end = async (): Promise<RunEnd> => {
    if (staged === undefined) return stopped
    await condition(allHandlersFinished)
    const sending = { ...run, staged, state }
    if (plan.onlyResolved === true) return await sendResolved(sending)
    return await (isBegun ? sendRemaining(sending) : sendStaged(sending))
  }
  try {
    const ended = await end()
    if (ended.how === 'stopped' && job.looksUpAfterStop) await lookUpRemaining({ ...run, staged, state })
    return (await job.prove?.(run, ended)) ?? ended
  } catch (error) {
    return await fail(run, { how: 'failed', error, claims: state.claims })
  }
}

/** Fails the run, after writing its report. */
async function fail(
  run: Working,
  { how, error, claims = 0 }: { how: 'refused' | 'failed'; error: unknown; claims?: number },
): Promise<never> {
  rethrowBug(error)
  const why = rootCause(error) ?? String(error)
  const result = await close(run, { how, why }, claims)
  run.attributes.set({ verdict: 'failed', needsPerson: true })
  // A refusal keeps its own name, because nothing was done.
  if (how === 'refused') throw error
  const { type, message } = run.job.failure({ why, result })
  throw ApplicationFailure.nonRetryable(message, type)
}

async function close(
  { plan, operator, progress, show, attributes }: Working,
  end: RunEnd,
  claims: number,
): Promise<WriteResult> {
  await operator.close()
  progress.phase = 'reporting'
  show()
  const input = { ...refOf(plan), ...end, claims }
  const closed = await steps.closeRun
    .executeWithOptions({ summary: 'write the report' }, [input])
    .catch(attributes.failUnreported)
  const { result, view } = closed as { result: WriteResult; view: View }
  operator.result = result
  progress.counts = result.counts
  progress.summary = result.summary
  progress.phase = 'ended'
  setCurrentDetails(toMarkdown(view))
  return result
}

/** Whether a person has something to do about the run. */
export const needsPerson = ({ inDoubt, counts }: Pick<WriteResult, 'inDoubt' | 'counts'>): boolean =>
  inDoubt || counts.parked + counts.rejected > 0

/** Sets the final search attributes and notifies people of the end. */
async function announce(
  { job, plan, control, notifier, attributes }: Working,
  { staged, result }: { staged: StagedChanges | undefined; result: WriteResult },
): Promise<void> {
  const { counts, summary, verdict } = result
  const isPreview = plan.dryRun && staged !== undefined
  const attention = isPreview ? job.attention?.({ plan, staged, result }) : undefined
  attributes.set({ verdict, needsPerson: attention !== undefined || needsPerson(result) })
  if (attention !== undefined) return await notifier.notify({ ...attention, report: result })
  if (counts.parked > 0)
    return await notifier.notify({
      // A recovery can be proven even though subscriptions that it only reports need a person.
      kind: verdict === 'proven' ? 'attention' : 'parked',
      summary,
      command: job.parkedCommand(result),
      report: result,
    })
  const isExpected = control.stopping || !result.inDoubt
  await notifier.notify({ kind: isExpected ? 'ended' : 'unproven', summary, report: result })
}
