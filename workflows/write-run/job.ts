import { proxyActivities } from '@temporalio/workflow'
import type { Activities } from '../../activities/index.ts'
import type { Opened } from '../../core/notifications/opened.ts'
import type { SendStep } from '../../core/changes/send/step.ts'
import type { ChangeRun, JobName, RunEnd } from '../../core/runs/run-notes.ts'
import type { RunControl } from '../run/control.ts'
import { openingWrite, sending, skipping, wholeRun } from '../run/activity-options.ts'
import type { Notifier, RunNotification } from '../run/notify.ts'
import type { SearchAttributes } from '../run/search-attributes.ts'
import type { OperatorState, WriteResult } from './operator-state.ts'
import type { StagedChanges, WriteProgress } from './progress.ts'
import type { ViewText } from './view.ts'

const { openRun } = proxyActivities<Activities>(openingWrite)
const { sendRun } = proxyActivities<Activities>(sending)
const { skipRemaining } = proxyActivities<Activities>(skipping)
const { stageRun, proveRun, closeRun } = proxyActivities<Activities>(wholeRun)

/** The steps of both jobs; a worker knows from a run's plan which job it is. */
export const steps = { openRun, stageRun, sendRun, skipRemaining, proveRun, closeRun }

/** The part of a plan that the write run itself needs; the job's own steps read the rest. */
export interface WritePlan extends ChangeRun {
  limits: object
  dryRun: boolean
  /** Sends only what a person resolves as absent. */
  onlyResolved?: boolean
  /** A person is present: a breaker that has given up waits for them instead of ending the run. */
  attended: boolean
  /** Seconds. */
  approvalWait: number
  /** The number of history events after which a new execution continues the run. */
  eventsPerExecution?: number
}

/** Carried from one segment of sending to the next, also across continue-as-new. */
export interface SendState {
  breakers: SendStep['breakers']
  claims: number
  seconds: number
  segment: number
  /** The keys of the open breakers whose opening was notified; absent before the first segment. */
  notifiedBreakers?: readonly string[] | undefined
  /** The others wait for the canary, or for a person who confirms it. */
  isCanary: boolean
  /** The last segment was interrupted and gave no counts: its worker was gone. */
  isCutOff: boolean
}

export interface WriteRun<Plan = WritePlan, Progress = WriteProgress> {
  plan: Plan
  progress: Progress
  show: () => void
  control: RunControl
  operator: OperatorState
  notifier: Notifier
}

/** Carried from one execution to the next when the history has grown long. */
export interface Continued<Plan = WritePlan, Staged = StagedChanges, Progress = WriteProgress> {
  plan: Opened<Plan>
  staged: Staged
  state: SendState
  progress: Progress
  paused: boolean
}

/** The differences between an import and a recovery. Everything else about a write run is in `writeRun`. */
export interface WriteJob<
  Plan extends WritePlan = WritePlan,
  Staged extends StagedChanges = StagedChanges,
  Result extends WriteResult = WriteResult,
  Progress extends WriteProgress = WriteProgress,
> {
  name: JobName
  /** The input, not parsed yet. */
  input: unknown
  progress: Progress
  describe(progress: Progress): ViewText
  /** Called once the run has a plan. */
  onPlan?(plan: Plan): void
  resourcesOf(plan: Plan): string[]
  stage: {
    phase: WriteProgress['phase']
    /** Whether the failure refuses the input: the person who started the run sees it, so nobody is notified. */
    isRefusal: boolean
  }
  /** The approvals that the run asks for. */
  questions(plan: Plan, staged: Staged): { approval?: { count?: number }; confirmCanary?: boolean }
  /** The minimum wait, in ms, so that changes that come due shortly after one another are handled together. */
  leastWaitMs?(plan: Plan): number
  /** Ends the run if its canary failed so that nothing else is to be sent. */
  onCanary(
    run: WriteRun<Plan, Progress>,
    canary: { rows: readonly number[]; failed: readonly string[] },
  ): Promise<RunEnd | undefined>
  /** Skips what breakers that have given up hold back, so that the canary continues without it. Default: the run ends. */
  skipGivenUp?(run: WriteRun<Plan, Progress>, given: { keys: readonly string[]; why: string }): Promise<void>
  onBound(run: WriteRun<Plan, Progress>, bound: 'maxChanges' | 'maxFailures'): Promise<RunEnd | 'continue'>
  /** After a stop, sends nothing more, and looks up what was sent until every result is known or a second stop arrives. */
  looksUpAfterStop?: true
  /** After sending: compares the result with the service. */
  prove?(run: WriteRun<Plan, Progress>, end: RunEnd): Promise<RunEnd>
  /** The failure of a failed run, from the cause and the report. */
  failure(failed: { why: string; result: Result }): { type: string; message: string }
  /** The command that resolves parked rows. */
  parkedCommand(result: Result): string
  /** The notification for a dry run that replaces the plain one at its end. */
  attention?(preview: { plan: Plan; staged: Staged; result: Result }): RunNotification | undefined
  continued?: Continued<Plan, Staged, Progress> | undefined
  /** Continues as a new execution of the workflow. Without it, a run has only one execution. */
  continueAs?(onward: Continued<Plan, Staged, Progress>): Promise<never>
}

/** A job together with its open plan. */
export type Working = WriteRun<Opened<WritePlan>> & { job: WriteJob; attributes: SearchAttributes }
