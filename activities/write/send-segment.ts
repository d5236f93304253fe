import { countLostClaims, watchLedger } from '../../core/changes/old-ledger.ts'
import { type SendWork, runSegment } from '../../core/changes/send/segment.ts'
import type { SendInput, SendStep } from '../../core/changes/send/step.ts'
import { takeRight } from '../../core/changes/send/send-right.ts'
import { showTestMode } from '../../core/changes/send/probe-mode.ts'
import { ReservedWorker } from '../../core/imports/errors.ts'
import type { ImportLimits } from '../../core/imports/input.ts'
import type { RecoveryNotes } from '../../core/recoveries/open.ts'
import type { ChangeRun } from '../../core/runs/run-notes.ts'
import type { SendLease } from '../../core/state/ledger/claims.ts'
import { sharedMark } from '../../core/state/claims-mark.ts'
import type { StepContext } from '../step.ts'
import type { WriteDeps } from './job.ts'
import { notifyDoubled } from './notify-doubled.ts'

/** Sends this long however long the preparation took: the next segment would prepare as long, and send nothing either. */
const leastMs = 5_000

/**
 * Sends the staged changes of a run and reconciles those without an answer, for a limited time or to the end. Safe
 * to retry: every request is claimed in the ledger before it leaves, and one without an answer is looked up, never
 * repeated. When stopped, or when a later attempt of the run starts, it sends no more changes and awaits those in flight.
 *
 * @throws {OldLedgerError} the ledger was restored from a backup
 * @throws {ReservedWorker} this worker must not send changes of the run; it may look them up
 */
export async function sendSegment(
  { deps, rates, attempts }: WriteDeps,
  context: StepContext,
  options: {
    plan: ChangeRun
    work: Omit<SendWork, 'limits'>
    input: SendInput & { limits: ImportLimits }
    /** The lease under which the run sends. */
    lease: SendLease
    /** How many changes the run has staged. */
    staged: number
  },
): Promise<SendStep> {
  const { plan, work, input, lease, staged } = options
  const { requestsPerSecond } = input.limits
  const { ledger } = deps.state
  const { run, identity } = plan
  if (input.lookupsOnly !== true && !deps.mayWrite(context.owner.workflowId)) throw new ReservedWorker(plan)
  const reportedClaims = claimsReported(context, input)
  context.report(() => ({ claims: reportedClaims }))
  const billing = context.watch(rates.forRun({ run, requestsPerSecond }))
  const send = async (signal: AbortSignal) => {
    // Lookups write nothing: without any, a run that was stopped ends also while the service is down.
    if (identity.mode === 'test' && input.lookupsOnly !== true) await showTestMode({ billing, signal })
    const told = { rows: staged, claims: reportedClaims }
    const watched = await watchLedger({ ledger, mark: sharedMark(deps), run, told })
    await countLost(context, { ledger, run, told })
    let counts = {}
    context.report(() => ({ ...counts, claims: watched.claims }))
    const notified: Promise<void>[] = []
    try {
      const sent = await runSegment({
        ...input,
        ...work,
        ms: Math.max(leastMs, deadline - performance.now()),
        limits: { ...input.limits, concurrency: input.limits.concurrency ?? deps.concurrency },
        ledger: watched.ledger,
        sender: await takeRight({ ledger, run, lease }),
        billing,
        signal,
        onProgress: (now) => {
          counts = now
        },
        onAway: context.onAway,
        onDoubled: (doubled) => notified.push(notifyDoubled({ deps, context, run, doubled })),
      })
      await watched.end()
      return { ...sent, claims: watched.claims }
    } finally {
      await Promise.all(notified)
    }
  }
  const deadline = context.beganAt + input.seconds * 1000
  const step = await attempts.take({ run, signal: context.signal, work: send })
  const { ended, counts } = step
  deps.observer.onEvent({ type: 'sent', run, kind: work.kind.name, ended, counts })
  return step
}

/** Counts once, after a repair, the resumes of which only Temporal was told. */
export async function countLost(
  { notes }: Pick<StepContext, 'notes'>,
  of: Omit<Parameters<typeof countLostClaims>[0], 'atRepair'>,
): Promise<void> {
  const { atRepair } = await notes.read<Pick<RecoveryNotes, 'atRepair'>>(of.run)
  if (atRepair === undefined) return
  await countLostClaims({ ...of, atRepair })
  await notes.write(of.run, { atRepair: null })
}

/**
 * The number of the run's claims as last reported to Temporal, by this step or by an earlier one.
 */
function claimsReported({ lastReport }: StepContext, { claims }: SendInput): number {
  const last = lastReport as { claims?: unknown } | undefined
  return Math.max(claims, typeof last?.claims === 'number' ? last.claims : 0)
}
