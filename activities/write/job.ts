import type { ListResource } from '../../core/billing/resources/filters.ts'
import type { RunRates } from '../../core/billing/run-rates.ts'
import type { Billing } from '../../core/billing/client.ts'
import type { RetentionAudit } from '../../core/changes/audit-retentions.ts'
import type { SendWork } from '../../core/changes/send/segment.ts'
import type { Reported, Reporting } from '../../core/changes/write-report.ts'
import type { ImportResult } from '../../core/imports/view.ts'
import type { RecoveryReport } from '../../core/recoveries/view.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { RunNotes, RunEnd } from '../../core/runs/run-notes.ts'
import type { Attempts } from '../../core/runs/sending-attempts.ts'
import type { Table } from '../../core/runs/view/view.ts'
import type { FencingToken } from '../../core/state/ledger/claims.ts'
import type { LeaseOwner } from '../../core/state/leases.ts'
import type { Ledger } from '../../core/state/ledger/ledger.ts'
import type { SharedFolder } from '../../core/storage/cached.ts'
import type { ActivityDeps, WritePlan } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** What the steps of a write run share with each other. */
export interface WriteDeps {
  deps: ActivityDeps
  rates: RunRates
  attempts: Attempts
}

/** The dependencies of one attempt of a step: those of the worker, and its run's ledger and notes. */
export type JobDeps = ActivityDeps & { ledger: Ledger; notes: RunNotes; attempt: number }

export interface Opening {
  deps: JobDeps
  context: StepContext
  /** The workflow's input, not parsed yet. */
  request: unknown
  /** The run id of the first execution; it stays the same across a continue-as-new and a reset. */
  firstRunId: string
  /** Refuses an input for another worker, and a service that does not answer for the first record of a list. */
  check: (options: { identity: Identity | undefined; resource: ListResource }) => Promise<void>
}

export interface Staging<Plan> {
  deps: JobDeps
  context: StepContext
  plan: Plan
  /** Limited to the run's share of the rate. */
  billing: Billing
}

/** What differs between the jobs that write to the service. Their steps are the same: see steps.ts. */
export interface Job<Plan extends WritePlan = WritePlan> {
  /** Plans a run; an execution that already has a plan keeps it. */
  open(opening: Opening): Promise<Plan>
  /**
   * The lease under which it sends. `taken`: which steps take it. At its end, an earlier attempt may have released one that
   * is not the run's own, and another run holds it.
   */
  lease(
    plan: Plan,
    context: StepContext,
  ): { name: string; owner: LeaseOwner; taken: 'always' | 'untilEnd' | 'never' }
  /** Stages every change, and returns their counts and tables for people. */
  stage(staging: Staging<Plan>): Promise<{ tables: Table[] }>
  /** How many changes it has staged; undefined if it has not. */
  staged(notes: RunNotes, run: string): Promise<number | undefined>
  /** What it sends, and how. */
  work(plan: Plan): Omit<SendWork, 'limits'>
  /** Compares every change with the service, where its list shows them. */
  prove?(proving: Staging<Plan> & { onFinding: () => void }): Promise<RetentionAudit>
  /** Closes what remains of a run that ends. */
  leave(leaving: RunEnd & { ledger: Ledger; run: string; sender: FencingToken | undefined }): Promise<unknown>
  report(
    reporting: Reporting<Plan> & { shared: SharedFolder },
  ): Promise<Reported<ImportResult | RecoveryReport, unknown>>
}
