import { join } from 'node:path'
import { closeRemaining, closeUntried } from '../../core/changes/close.ts'
import { refuseOlderThanTold } from '../../core/changes/old-ledger.ts'
import { openCanary } from '../../core/changes/send/canary.ts'
import { stagedBefore } from '../../core/changes/staged-changes.ts'
import { endRun } from '../../core/changes/write-report.ts'
import type { SendInput, SendStep } from '../../core/changes/send/step.ts'
import { takeRight } from '../../core/changes/send/send-right.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import type { JobName, RunEnd } from '../../core/runs/run-notes.ts'
import type { Attempts } from '../../core/runs/sending-attempts.ts'
import { refuseOlderThanMark, sharedMark } from '../../core/state/claims-mark.ts'
import { OldLedgerError } from '../../core/state/errors.ts'
import type { FencingToken, SendLease } from '../../core/state/ledger/claims.ts'
import type { StepContext } from '../step.ts'
import { importJob } from './import-job.ts'
import type { WritePlan } from '../deps.ts'
import type { ImportLimits } from '../../core/imports/input.ts'
import type { Job, JobDeps, WriteDeps } from './job.ts'
import { recoveryJob } from './recovery-job.ts'
import { countLost, sendSegment } from './send-segment.ts'

const jobs: Readonly<Record<JobName, Job>> = { import: importJob, recovery: recoveryJob }

interface OpenInput {
  job: JobName
  input: unknown
  firstRunId: string
}

interface OfRun {
  plan: WritePlan
  /** The current limits, which people may have changed since the plan was made; a recovery has all but one. */
  limits?: ImportLimits
}

/** `isOwn`: nobody but an execution of this run ever takes it. */
type EndLease = SendLease & { isOwn: boolean }

/**
 * Ends the sending of a run, so that nothing leaves after its report is written: awaits the attempt of this process, and
 * takes the right to claim from any other, such as one on another machine, which may not know yet that it was given up.
 * Returns the right, under which what remains is closed; undefined if another run took the lease since.
 *
 * @throws {SupersededError} a later attempt has taken the right
 * @throws {OldLedgerError} what looks unsent may have been sent, and its keys must not become free for other runs
 */
export async function endSending({
  deps,
  attempts,
  run,
  lease,
}: {
  deps: Pick<WriteDeps['deps'], 'state' | 'shared' | 'dataDir'>
  attempts: Attempts
  run: string
  lease: EndLease
}): Promise<FencingToken | undefined> {
  const { ledger, leases } = deps.state
  await attempts.end(run)
  await refuseOlderThanMark({ ledger, mark: sharedMark(deps) })
  // An earlier attempt of this step has released the lease, and another run took it: nobody can claim for this one.
  const holder = await leases.lastHolder(lease)
  if (!lease.isOwn && holder !== undefined && holder.runId !== lease.owner.runId) return undefined
  return await takeRight({ ledger, run, lease })
}

/** The steps of a run that writes to the service: an import or a recovery. */
export function createWriteSteps(write: WriteDeps) {
  const { deps, rates, attempts } = write
  const depsOf = ({ notes, attempt }: StepContext): JobDeps => ({
    ...deps,
    ledger: deps.state.ledger,
    notes,
    attempt,
  })
  const leaseOf = async (
    plan: WritePlan,
    context: StepContext,
    { isAtEnd = false } = {},
  ): Promise<EndLease> => {
    const { name, owner, taken } = jobs[plan.job].lease(plan, context)
    const isOwn = taken === 'always'
    if (isOwn || (taken === 'untilEnd' && !isAtEnd))
      await context.takeLeases([name], { owner, again: !isOwn })
    return { name, owner, attempt: context.attempt, isOwn }
  }
  const billingOf = (context: StepContext, { plan, limits = plan.limits }: OfRun) =>
    context.watch(rates.forRun({ run: plan.run, requestsPerSecond: limits.requestsPerSecond }))

  return {
    /** Plans a run: checks its input and the service, and that no other run does the same. */
    openRun: async (
      context: StepContext,
      { job, input: request, firstRunId }: OpenInput,
    ): Promise<Opened<WritePlan>> => {
      const { signal, watch } = context
      if (!Object.hasOwn(jobs, job)) throw new InvalidInput(`There is no job ${JSON.stringify(job)}.`)
      const plan = await jobs[job].open({
        deps: depsOf(context),
        context,
        request,
        firstRunId,
        async check({ identity, resource }) {
          if (identity !== undefined) refuseOther({ run: identity, worker: deps.identity })
          // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
          await watch(deps.billing).list({ resource, page: 1, pageSize: 1, tries: 1, signal })
        },
      })
      return await toOpened(deps, plan)
    },

    /** Stages every change of a run, and sends none. Safe to retry. */
    stageRun: async (context: StepContext, input: OfRun) => {
      const { plan } = input
      const { run, dryRun } = plan
      const { ledger } = deps.state
      const job = jobs[plan.job]
      await leaseOf(plan, context)
      await refuseOlderThanMark({ ledger, mark: sharedMark(deps) })
      const before = async () =>
        (await job.staged(context.notes, run)) ??
        (await stagedBefore(deps.shared, join(deps.dataDir, plan.folder)))
      await refuseOlderThanTold({ ledger, run, told: { rows: dryRun ? 0 : await before(), claims: 0 } })
      const billing = billingOf(context, input)
      const staged = await job.stage({ deps: depsOf(context), context, plan, billing })
      const { kind, canarySize } = job.work(plan)
      return { ...staged, ...(await openCanary({ ledger, run, kind, ...canarySize })) }
    },

    /** Sends the staged changes of a run for a while; see `sendSegment`. */
    sendRun: async (
      context: StepContext,
      input: SendInput & { plan: WritePlan; limits: ImportLimits },
    ): Promise<SendStep> => {
      const { plan } = input
      const job = jobs[plan.job]
      const lease = await leaseOf(plan, context)
      const staged = await job.staged(context.notes, plan.run)
      // It may have been stopped before it staged anything.
      if (staged === undefined && input.lookupsOnly !== true)
        throw new OldLedgerError({ lacks: 'what this run has staged' })
      const work = job.work(plan)
      return await sendSegment(write, context, { plan, work, input, lease, staged: staged ?? 0 })
    },

    /** Compares every change of a run with the service. */
    proveRun: async (context: StepContext, input: OfRun) => {
      const { plan } = input
      const job = jobs[plan.job]
      let findings = 0
      context.report(() => ({ phase: 'comparing the rows with the list', findings }))
      const billing = billingOf(context, input)
      const onFinding = () => (findings += 1)
      return await job.prove?.({ deps: depsOf(context), context, plan, billing, onFinding })
    },

    /** Leaves changes of a run for good: those of some breakers, or all that were not sent yet. */
    skipRemaining: async (
      context: StepContext,
      { plan, keys, why }: { plan: WritePlan; keys?: readonly string[]; why: string },
    ): Promise<void> => {
      const { run } = plan
      const lease = await leaseOf(plan, context, { isAtEnd: true })
      const sender = await endSending({ deps, attempts, run, lease })
      const of = { ledger: deps.state.ledger, run, why, sender }
      if (keys === undefined) await closeUntried({ ...of, unsent: true })
      for (const breakerKey of keys ?? []) await closeRemaining({ ...of, breakerKey })
    },

    /** Ends a run: writes its report and files, and releases its lease. */
    closeRun: async (
      context: StepContext,
      { claims = 0, ...input }: RunEnd & { plan: WritePlan; claims?: number },
    ) => {
      const { plan } = input
      context.report(() => ({ phase: 'writing the report' }))
      const lease = await leaseOf(plan, context, { isAtEnd: true })
      const ending = { deps, attempts, run: plan.run, lease }
      const sender = plan.dryRun ? undefined : await endSending(ending)
      const { dataDir, shared } = deps
      const of = { ledger: deps.state.ledger, notes: context.notes, dataDir, shared, plan, run: plan.run }
      // Its last segment may have ended before the repair.
      await countLost(context, { ...of, told: { claims } })
      await jobs[plan.job].leave({ ...input, ...of, sender })
      const closed = await endRun({ ...input, ...of }, (closing) => jobs[plan.job].report({ ...of, closing }))
      await deps.state.leases.release(lease)
      rates.end(plan)
      deps.observer.onEvent({ type: 'ended', run: plan.run, verdict: closed.result.verdict })
      return closed
    },
  }
}
