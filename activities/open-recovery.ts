import { activityInfo, cancellationSignal } from '@temporalio/activity'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { subscriptions } from '../billing/resources/subscriptions.ts'
import { replaceFile } from '../destinations/durable.ts'
import { type AskedRecovery, parseRecoveryInput } from '../recoveries/recovery-input.ts'
import { triedReasons } from '../recoveries/reasons.ts'
import { type RecoveryPlan, recoveryFiles } from '../recoveries/recovery-plan.ts'
import { readSavedPlan } from '../recoveries/run-notes.ts'
import { claim, ownerOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import type { MarkName } from './marks.ts'
import { kindsFor, type NoticeKind } from './notice.ts'
import { refuseOther } from './export-plan.ts'
import { namesIn } from './run-name.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** What a recovery may do where nothing is said: cautious, because money moves. */
const usual = {
  maxPages: 50,
  maxSubscriptions: 500,
  canary: 5,
  attempts: 3,
  firstWaitMs: 15 * minuteMs,
  longestWaitMs: 4 * hourMs,
  coolDownMs: hourMs,
  /** As long as a person may be at lunch, and not so long that much has changed meanwhile. */
  approvalMs: 2 * hourMs,
  /** Temporal suggests a new execution at 4,096; a history this short is also quick to read. */
  eventsPerExecution: 1_000,
} as const

export interface OpenRecoveryInput {
  input: unknown
  /** The first of the executions that continue each other: it stays the same over a continue-as-new and a Reset. */
  firstRunId: string
}

/** A plan, with what anybody wants to be told of and the search attributes that the server has. */
export type OpenedRecovery = RecoveryPlan & { notifies?: NoticeKind[]; marks?: MarkName[] }

/** Settles what a recovery does: checks its input and the service, and that no other one goes on in the workspace. */
export function createOpenRecovery(deps: ActivityDeps) {
  return async function openRecovery({ input, firstRunId }: OpenRecoveryInput): Promise<OpenedRecovery> {
    const served = { notifies: kindsFor(deps.receivers), marks: await deps.marks() }
    const { workflowId } = ownerOf()
    const execution = { workflowId, runId: firstRunId }
    const { plan: settled, ...place } = await nameRecovery({ dataDir: deps.dataDir, execution })
    if (settled !== undefined) {
      refuseOther({ run: settled.identity, worker: deps.identity })
      await claimRecovery({ deps, plan: settled })
      return { ...settled, ...served }
    }
    const asked = parseRecoveryInput(input)
    if (asked.identity !== undefined) refuseOther({ run: asked.identity, worker: deps.identity })
    // Temporal tries again, and shows meanwhile why: the client's own patience would hide it for minutes.
    await deps.billing.list({
      resource: subscriptions,
      page: 1,
      pageSize: 1,
      tries: 1,
      signal: cancellationSignal(),
    })
    const plan = toPlan({ deps, asked, ...place, execution })
    await claimRecovery({ deps, plan })
    const { customers, exclude } = asked
    const narrowing = { ...(customers && { customers }), ...(exclude && { exclude }) }
    await mkdir(join(deps.dataDir, plan.folder), { recursive: true })
    const saved = { plan, narrowing, asked: withoutIdentity(input) }
    await replaceFile(join(deps.dataDir, plan.folder, recoveryFiles.plan), JSON.stringify(saved))
    return { ...plan, ...served }
  }
}

/** One recovery at a time in a workspace and mode, however it was started. A dry run resumes nothing. */
export async function claimRecovery({
  deps,
  plan,
}: {
  deps: ActivityDeps
  plan: RecoveryPlan
}): Promise<void> {
  if (!plan.dryRun) await claim({ deps, what: claimOf(plan), owner: plan.execution })
}

export const claimOf = ({ identity: { workspace, mode } }: RecoveryPlan) => `recovery of ${workspace} ${mode}`

/** The name of a recovery: its workflow id. An id that was used before by another one is called `<id>.2`. */
async function nameRecovery({
  dataDir,
  execution,
}: {
  dataDir: string
  execution: RecoveryPlan['execution']
}): Promise<{ run: string; folder: string; plan?: RecoveryPlan }> {
  const { workflowId, runId } = execution
  for await (const place of namesIn({ dataDir, room: 'recoveries', workflowId })) {
    const saved = await readSavedPlan(join(dataDir, place.folder))
    if (saved === undefined) return place
    if (saved.plan.execution.runId === runId) return { ...place, plan: saved.plan }
  }
  throw new RangeError('the names of a run have an end')
}

function withoutIdentity(input: unknown): Record<string, unknown> {
  const { identity: _, ...asked } = input as Record<string, unknown>
  return asked
}

function toPlan({
  deps,
  asked,
  run,
  folder,
  execution,
}: {
  deps: ActivityDeps
  asked: AskedRecovery
  run: string
  folder: string
  execution: RecoveryPlan['execution']
}): RecoveryPlan {
  const { reasons, nextBilling, olderThan, breakerWaits, approval = true, dryRun = false } = asked
  return {
    run,
    execution,
    folder,
    startedAt: new Date(activityInfo().scheduledTimestampMs).toISOString(),
    identity: deps.identity,
    reasons: [...new Set(reasons ?? triedReasons)],
    named: reasons !== undefined,
    maxPages: asked.maxPages ?? usual.maxPages,
    dryRun,
    ...(asked.notifyAbove !== undefined && { notifyAbove: asked.notifyAbove }),
    approval,
    attended: asked.attended ?? approval,
    approvalMs: asked.approvalWait ?? usual.approvalMs,
    canary: asked.canary ?? usual.canary,
    ...(nextBilling !== undefined && { nextBilling }),
    attempts: asked.attempts ?? usual.attempts,
    firstWaitMs: asked.firstWait ?? usual.firstWaitMs,
    longestWaitMs: asked.longestWait ?? usual.longestWaitMs,
    coolDownMs: asked.coolDown ?? usual.coolDownMs,
    ...(olderThan !== undefined && { olderThanMs: olderThan }),
    verifyMs: asked.verifyAfter ?? deps.settleMs,
    settleMs: Math.max(asked.verifyAfter ?? 0, deps.settleMs),
    ...(breakerWaits && { breakerWaitsMs: breakerWaits }),
    limits: limitsOf(asked),
    eventsPerExecution: asked.eventsPerExecution ?? usual.eventsPerExecution,
  }
}

function limitsOf({
  requestsPerSecond,
  concurrency,
  maxSubscriptions = usual.maxSubscriptions,
  maxFailureShare,
}: AskedRecovery): RecoveryPlan['limits'] {
  return {
    maxSubscriptions,
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
    ...(concurrency !== undefined && { concurrency }),
    ...(maxFailureShare !== undefined && { maxFailureShare }),
  }
}
