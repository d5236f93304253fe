import { Context, type Info } from '@temporalio/activity'
import type { Client, WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client'
import { ApplicationFailure, CancelledFailure, WorkflowNotFoundError } from '@temporalio/common'
import type { Billing } from '../core/billing/client.ts'
import { TroubleWatch } from '../core/billing/trouble-watch.ts'
import { UnwritableError } from '../core/destinations/errors.ts'
import { findExportStep } from '../core/exports/plan.ts'
import { InvalidInput, outwardMessage, UnwritableFolder } from '../core/runs/errors.ts'
import { refuseForgotten } from '../core/changes/staged-changes.ts'
import { refuseOther } from '../core/runs/identity.ts'
import { knownRun, type RunRef } from '../core/runs/known-run.ts'
import { createRunNotes, type RunNotes } from '../core/runs/run-notes.ts'
import { takeLease } from '../core/runs/lease.ts'
import { toStateError } from '../core/state/errors.ts'
import { whenStoreIsBack } from '../core/state/store.ts'
import { isSystemError, refusalOf } from '../core/storage/system-errors.ts'
import type { LeaseOwner } from '../core/state/leases.ts'
import type { Trouble } from '../core/runs/view/trouble.ts'
import type { ActivityDeps, WritePlan } from './deps.ts'
import type { Unopened } from '../core/notifications/opened.ts'
import { createTroubleSignals, troubleIn } from './tell-trouble.ts'

/** The heartbeat interval of a step, which is also how soon it learns of a stop. */
const heartbeatMs = 1_000

/** PostgreSQL is back if it was not away for this long: longer than its driver waits for a connection. */
const backAfterMs = 15_000

/** One attempt of a step: everything it needs from Temporal. */
export interface StepContext {
  /** The workflow execution that the step belongs to; the owner of its leases. */
  owner: LeaseOwner
  /** When the step was scheduled (ISO 8601); the same for every attempt. */
  scheduledAt: string
  /** When Temporal scheduled this attempt of the step, in milliseconds since 1970. */
  attempt: number
  taskQueue: string
  workflowType: string
  /** Aborted when the step must stop. */
  signal: AbortSignal
  client: Client
  /** What is known of runs, as this attempt reads and writes it. */
  notes: RunNotes
  /** When this attempt began, by performance.now(). */
  beganAt: number
  /** What was reported last, by this attempt or by the previous one; undefined if nothing was. */
  readonly lastReport: unknown
  /**
   * Sends a heartbeat with these details now and every second. Until the first call, heartbeats repeat the details
   * of the last attempt.
   */
  report: (details: () => unknown) => void
  /** Says that PostgreSQL did not answer just now; the heartbeats have it as `trouble`, too. */
  onAway: () => void
  /** The client with which the step's requests say why they fail or wait; the heartbeats have it as `trouble`. */
  watch: (billing: Billing) => Billing
  /**
   * Takes leases for the execution, or for the first one of a run that continues. Every step takes its leases again, because a run
   * that was reset is another execution than the one that took them.
   *
   * @throws {Busy} if another run that has not ended holds one; with `again`, if any other run has taken one since
   */
  takeLeases: (leases: readonly string[], of?: { owner?: LeaseOwner; again?: boolean }) => Promise<void>
  /** Whether another run has ended, from the point of view of `asker`: this execution, or the first one of its run. */
  isClosedTo: (asker: LeaseOwner) => (execution: LeaseOwner) => Promise<boolean>
}

/** The service refused the token, but the token file has a new one by now: the next attempt uses it. */
class TokenReplaced extends Error {
  override readonly name = 'TokenReplaced'
  readonly retryable = true
  constructor() {
    super('The service refused the token. Its file now has a new one; the step is retried.')
  }
}

/** The list that a step of an export reads or publishes. */
function resourceOf(input: unknown): string | undefined {
  const { resource } = { ...(input as { resource?: unknown }) }
  return typeof resource === 'string' ? resource : undefined
}

type Run<Input> = Omit<Input, 'plan'> & RunRef

/**
 * Wraps the steps: handles heartbeats, cancellation and errors, and finds the run of each step. As Temporal may repeat a
 * step, an attempt repeats it itself while PostgreSQL is away, and so outlives that. A file that is locked blocks this
 * process, so Temporal retries then.
 */
export function createSteps(
  deps: Pick<
    ActivityDeps,
    'dataDir' | 'shared' | 'outDirs' | 'identity' | 'state' | 'awaitToken' | 'searchAttributes'
  >,
) {
  const step =
    <Input extends unknown[], Result>(
      work: (context: StepContext, ...input: Input) => Promise<Result>,
      resource: (input: unknown) => string | undefined = () => undefined,
    ) =>
    async (...input: Input): Promise<Result> => {
      try {
        return await withHeartbeat(deps, resource(input[0]), (context) => work(context, ...input))
      } catch (error) {
        throw toFailure(error, deps)
      }
    }

  /** A step that opens a run. Its failure has the search attributes of the server, which only a plan tells otherwise. */
  const opening = <Input extends unknown[], Result>(
    work: (context: StepContext, ...input: Input) => Promise<Result>,
  ) => {
    const open = step(work)
    return async (...input: Input): Promise<Result> => {
      try {
        return await open(...input)
      } catch (error) {
        if (!(error instanceof ApplicationFailure)) throw error
        const unopened: Unopened = { searchAttributes: await deps.searchAttributes().catch(() => []) }
        throw new ApplicationFailure(error.message, error.type, error.nonRetryable, [unopened])
      }
    }
  }

  /** A step of a run: its input names the run, and the step gets the plan that is known of it. */
  const ofRun =
    <Plan>(find: (run: string, input: unknown, notes: RunNotes) => Promise<Plan | undefined>) =>
    <Input extends { plan: Plan }, Result>(work: (context: StepContext, input: Input) => Promise<Result>) =>
      step(async (context, input: Run<Input>) => {
        const { notes } = context
        const plan = await knownRun({ input, worker: deps.identity, find: (run) => find(run, input, notes) })
        return await work(context, { ...input, plan } as unknown as Input)
      }, resourceOf)

  const ofChanges = ofRun(async (run, _, notes): Promise<WritePlan | undefined> => {
    const { plan } = await notes.read<{ plan: WritePlan }>(run)
    if (plan !== undefined) refuseOther({ run: plan.identity, worker: deps.identity })
    else await refuseForgotten(deps, run)
    return plan
  })

  return {
    step,
    opening,
    ofExport: ofRun((run, input) => findExportStep(deps, { run, input })),
    ofChanges,
  }
}

async function withHeartbeat<T>(
  { state, awaitToken }: Pick<ActivityDeps, 'state' | 'awaitToken'>,
  resource: string | undefined,
  work: (context: StepContext) => Promise<T>,
): Promise<T> {
  const context = Context.current()
  const { info, client, cancellationSignal: signal } = context
  const owner = ownerOf(info)
  let details = (): unknown => info.heartbeatDetails
  const before = troubleIn(info.heartbeatDetails)
  const watch = new TroubleWatch(before?.ofState ? undefined : before)
  let waiting: Trouble | undefined
  let away = before?.ofState ? before : undefined
  let awayAt = performance.now()
  const onAway = () => {
    const { since, failures } = away ?? { since: Date.now(), failures: 0 }
    away = { what: 'does not answer', since, failures: failures + 1, ofState: true }
    awayAt = performance.now()
    beat()
  }
  const signals = createTroubleSignals({ client, run: owner, step: info.activityId, resource, before })
  const troubleNow = (): Trouble | undefined => {
    if (performance.now() - awayAt > backAfterMs) away = undefined
    return waiting ?? away ?? watch.trouble
  }
  const beat = () => {
    const trouble = troubleNow()
    const { trouble: _, ...others } = { ...(details() as { trouble?: unknown } | undefined) }
    context.heartbeat(
      trouble === undefined && details() === undefined
        ? undefined
        : { ...others, ...(trouble && { trouble }) },
    )
    void signals.see(trouble)
  }
  const isClosedTo = (asker: LeaseOwner) => (execution: LeaseOwner) => hasEnded({ client, execution, asker })
  const attempt: StepContext = {
    notes: createRunNotes({ notes: state.notes, attempt: info.currentAttemptScheduledTimestampMs }),
    owner,
    scheduledAt: new Date(info.scheduledTimestampMs).toISOString(),
    attempt: info.currentAttemptScheduledTimestampMs,
    beganAt: performance.now(),
    taskQueue: info.taskQueue,
    workflowType: info.workflowType ?? '',
    signal,
    client,
    get lastReport() {
      return details()
    },
    report(current) {
      details = current
      beat()
    },
    onAway,
    watch: (billing) => billing.watched(watch),
    async takeLeases(leases, { owner: asker = owner, again } = {}) {
      for (const name of leases)
        await takeLease({ leases: state.leases, name, owner: asker, isClosed: isClosedTo(asker), again })
    },
    isClosedTo,
  }
  beat()
  const timer = setInterval(beat, heartbeatMs)
  try {
    const forMs = remainingMs(info)
    const result = await (state.shared === undefined
      ? work(attempt)
      : whenStoreIsBack(() => work(attempt), { signal, forMs, onAway }))
    await signals.see(undefined)
    return result
  } catch (error) {
    const onWait = (tokenUntil: number) => {
      waiting = { what: 'refuses the token', since: Date.now(), failures: 1, tokenUntil }
      beat()
    }
    if (await awaitToken?.(error, { signal, withinMs: remainingMs(info), onWait })) throw new TokenReplaced()
    if (troubleNow() !== undefined && !isFinal(error)) {
      beat()
      await signals.failed(troubleNow())
    }
    throw error
  } finally {
    clearInterval(timer)
  }
}

/** The time left in this attempt in ms, minus a margin to report its end. */
const remainingMs = ({ startToCloseTimeoutMs, currentAttemptScheduledTimestampMs }: Info) =>
  currentAttemptScheduledTimestampMs + startToCloseTimeoutMs - Date.now() - 10_000

function ownerOf({ workflowExecution }: Info): LeaseOwner {
  // The files and leases of a step are named after its workflow.
  if (workflowExecution === undefined)
    throw new InvalidInput('This step is part of a workflow. Start the workflow instead.')
  const { workflowId, runId } = workflowExecution
  return { workflowId, runId }
}

/**
 * Whether a run has ended. A run that Temporal no longer has (retention, a new server) has ended; a run that was
 * reset or continued has not ended while its successor is active. Only one execution of a workflow id is active at
 * a time: if that is the asker, all earlier ones have ended.
 */
export async function hasEnded(options: {
  client: Pick<Client, 'workflow'>
  execution: LeaseOwner
  asker: LeaseOwner
}): Promise<boolean> {
  const { client, execution, asker } = options
  const { workflowId, runId } = execution
  const noted = await describe(client.workflow.getHandle(workflowId, runId))
  if (noted !== undefined && isOpen(noted)) return false
  if (workflowId === asker.workflowId) return true
  const last = await describe(client.workflow.getHandle(workflowId))
  if (last === undefined || !isOpen(last)) return true
  // Temporal may have deleted the first execution of a long chain while the last one runs; its run id identifies the chain.
  return chainOf(last) !== (noted === undefined ? runId : chainOf(noted))
}

/** Undefined if Temporal does not have the execution. */
async function describe(
  handle: Pick<WorkflowHandle, 'describe'>,
): Promise<WorkflowExecutionDescription | undefined> {
  try {
    return await handle.describe()
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined
    throw error
  }
}

const isOpen = ({ status }: WorkflowExecutionDescription) =>
  status.name === 'RUNNING' || status.name === 'PAUSED'

/** The run id that a reset, a retry and a continuation share with the original execution. */
const chainOf = ({ raw }: WorkflowExecutionDescription) => raw.workflowExecutionInfo?.firstRunId

/**
 * Converts a step's error for Temporal. An error with `retryable: false` ends the run with its own message, and so
 * does a disk that cannot be written, because waiting fixes neither; all others are retried. Only the error's name
 * and its public message leave the worker: no rows, no messages of the service, no token.
 */
export function toFailure(thrown: unknown, deps: Pick<ActivityDeps, 'dataDir' | 'shared'>): Error {
  if (thrown instanceof ApplicationFailure || thrown instanceof CancelledFailure) return thrown
  const error = translate(thrown, deps.dataDir)
  if (!(error instanceof Error))
    return ApplicationFailure.create({ message: String(error), type: 'Unexpected' })
  const nonRetryable = isFinal(error) && !(deps.shared.isShared && isOfDisk(error))
  return ApplicationFailure.create({ message: outwardMessage(error), type: error.name, nonRetryable })
}

/** Whether waiting does not fix it. */
export const isFinal = (error: unknown): error is Error =>
  error instanceof Error && 'retryable' in error && error.retryable === false

/** The disk of this machine refuses: of several workers, another one may have a better one. */
const isOfDisk = (error: Error) =>
  error instanceof UnwritableFolder || (error instanceof UnwritableError && isSystemError(error.cause))

function translate(error: unknown, dataDir: string): unknown {
  if (!isSystemError(error)) return toStateError({ place: dataDir, cause: error })
  const why = refusalOf(error)
  return why === undefined ? error : new UnwritableFolder({ dataDir, why, cause: error })
}
