import { Context, type Info } from '@temporalio/activity'
import type { Client, WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import { findExportStep } from '../core/exports/find-run.ts'
import { findImport } from '../core/imports/run-files.ts'
import { findRecovery } from '../core/recoveries/find-run.ts'
import { InvalidInput } from '../core/runs/errors.ts'
import { knownRun, type RunRef } from '../core/runs/known-run.ts'
import { takeLease } from '../core/runs/lease.ts'
import type { ChangeRun } from '../core/runs/run-files.ts'
import type { LeaseOwner } from '../core/state/leases.ts'
import type { ActivityDeps } from './deps.ts'
import { toFailure } from './failures.ts'

/** How often a step heartbeats, which is also how soon it hears of a stop. */
const heartbeatMs = 1_000

/** One attempt of Temporal at a step: all that a step knows and needs of Temporal. */
export interface StepContext {
  /** The execution that the step belongs to, as the state knows an owner of leases. */
  owner: LeaseOwner
  /** When the step was scheduled (ISO 8601): the same at every attempt. */
  scheduledAt: string
  taskQueue: string
  /** Aborted when the step has to stop. */
  signal: AbortSignal
  client: Client
  /** The heartbeat of the attempt before this one; undefined at the first. */
  lastReport: unknown
  /** Heartbeats with these details now and every second from now on. Until the first call, those of the last attempt are repeated. */
  report: (details: () => unknown) => void
  /**
   * Takes leases for the execution, or for the run that it is a part of. Every step takes its own again: a run that was
   * reset is another execution, and the one that took them has ended.
   *
   * @throws {Busy} another run that has not ended holds one
   */
  takeLeases: (leases: readonly string[], owner?: LeaseOwner) => Promise<void>
  /** How a run that is active, this one or the one that it is a part of, learns whether another has ended. */
  isClosedTo: (asker: LeaseOwner) => (execution: LeaseOwner) => Promise<boolean>
}

/** The service refused the token, but the token file has a new one by now: the next attempt uses that. */
class TokenReplaced extends Error {
  override readonly name = 'TokenReplaced'
  readonly retryable = true
  constructor() {
    super('The service refused the token. Its file now has a new one; the step is retried.')
  }
}

type Run<Input> = Omit<Input, 'plan'> & RunRef

/** Wraps the steps: heartbeat, cancellation and errors of each are handled here, and each finds its run here. */
export function createSteps(
  deps: Pick<ActivityDeps, 'dataDir' | 'outDirs' | 'identity' | 'state' | 'awaitToken'>,
) {
  const step =
    <Input extends unknown[], Result>(work: (context: StepContext, ...input: Input) => Promise<Result>) =>
    async (...input: Input): Promise<Result> => {
      try {
        return await beating(deps, (context) => work(context, ...input))
      } catch (error) {
        throw toFailure(error, deps)
      }
    }

  /** A step of a run: its input names the run, and the step gets the plan that lies in the run's folder. */
  const ofRun =
    <Plan>(find: (run: string, input: unknown) => Promise<Plan | undefined>) =>
    <Input extends { plan: Plan }, Result>(work: (context: StepContext, input: Input) => Promise<Result>) =>
      step(async (context, input: Run<Input>) => {
        const plan = await knownRun({ input, worker: deps.identity, find: (run) => find(run, input) })
        return await work(context, { ...input, plan } as unknown as Input)
      })

  return {
    step,
    ofExport: ofRun((run, input) => findExportStep(deps, { run, input })),
    ofImport: ofRun((run) => findImport(deps, run)),
    ofRecovery: ofRun((run) => findRecovery(deps, run)),
    /** Of either: no two of them have the same name. */
    ofChanges: ofRun<ChangeRun>(
      async (run) => (await findImport(deps, run)) ?? (await findRecovery(deps, run)),
    ),
  }
}

async function beating<T>(
  { state, awaitToken }: Pick<ActivityDeps, 'state' | 'awaitToken'>,
  work: (context: StepContext) => Promise<T>,
): Promise<T> {
  const context = Context.current()
  const { info, client, cancellationSignal: signal } = context
  const owner = ownerOf(info)
  let details = (): unknown => info.heartbeatDetails
  const beat = () => context.heartbeat(details())
  const isClosedTo = (asker: LeaseOwner) => (execution: LeaseOwner) => hasEnded({ client, execution, asker })
  beat()
  const timer = setInterval(beat, heartbeatMs)
  try {
    return await work({
      owner,
      scheduledAt: new Date(info.scheduledTimestampMs).toISOString(),
      taskQueue: info.taskQueue,
      signal,
      client,
      lastReport: info.heartbeatDetails,
      report(current) {
        details = current
        beat()
      },
      async takeLeases(leases, asker = owner) {
        for (const name of leases)
          await takeLease({ leases: state.leases, name, owner: asker, isClosed: isClosedTo(asker) })
      },
      isClosedTo,
    })
  } catch (error) {
    if (await awaitToken?.(error, { signal, withinMs: remainingMs(info) })) throw new TokenReplaced()
    throw error
  } finally {
    clearInterval(timer)
  }
}

/** The time left in this attempt, minus a margin to report its end. */
const remainingMs = ({ startToCloseTimeoutMs, currentAttemptScheduledTimestampMs }: Info) =>
  currentAttemptScheduledTimestampMs + startToCloseTimeoutMs - Date.now() - 10_000

function ownerOf({ workflowExecution }: Info): LeaseOwner {
  // What it keeps would lie under no name at all.
  if (workflowExecution === undefined) throw new InvalidInput('This step is part of a workflow: start that.')
  const { workflowId, runId } = workflowExecution
  return { workflowId, runId }
}

/**
 * Whether a run has ended. One that Temporal has forgotten (retention, a new server) has; one that was reset or
 * continued has not while its successor runs. Of one workflow id a single execution runs at a time: if that is the
 * asker itself, all before it have ended.
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
  // The first of a long chain may be forgotten while its last one runs: its id is the chain's.
  return chainOf(last) !== (noted === undefined ? runId : chainOf(noted))
}

/** Undefined where Temporal does not know it. */
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

/** What a reset, a retry and a continuation have in common with the run that they came of. */
const chainOf = ({ raw }: WorkflowExecutionDescription) => raw.workflowExecutionInfo?.firstRunId
