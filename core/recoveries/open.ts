import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Identity } from '../runs/identity.ts'
import { namesIn } from '../runs/name.ts'
import { replaceFile } from '../storage/durable.ts'
import type { AskedRecovery } from './input.ts'
import { type RecoveryPlan, recoveryFiles } from './plan.ts'
import { triedReasons } from './reasons.ts'
import { readSavedPlan } from './run-files.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** The defaults, chosen cautiously because money moves. */
const usual = {
  maxPages: 50,
  maxChanges: 500,
  canary: 5,
  attempts: 3,
  firstWaitMs: 15 * minuteMs,
  longestWaitMs: 4 * hourMs,
  coolDownMs: hourMs,
  /** Long enough to cover a lunch break, short enough that little has changed in the meantime. */
  approvalMs: 2 * hourMs,
  /** Temporal suggests a new execution at 4,096; a history this short is also quick to replay. */
  eventsPerExecution: 1_000,
} as const

/** Names a recovery after its workflow id; a reused id gives `<id>.2`. */
export async function nameRecovery({
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

/** Saves a plan in the run's folder, together with its input. */
export async function saveRecoveryPlan(options: {
  dataDir: string
  plan: RecoveryPlan
  asked: AskedRecovery
  input: unknown
}): Promise<void> {
  const { dataDir, plan, asked } = options
  const { customers, exclude } = asked
  const narrowing = { ...(customers && { customers }), ...(exclude && { exclude }) }
  const { identity: _, ...input } = options.input as Record<string, unknown>
  await mkdir(join(dataDir, plan.folder), { recursive: true })
  const saved = { plan, narrowing, asked: input }
  await replaceFile(join(dataDir, plan.folder, recoveryFiles.plan), JSON.stringify(saved))
}

/** Builds the plan from the input and the defaults. */
export function toRecoveryPlan(options: {
  asked: AskedRecovery
  run: string
  folder: string
  execution: RecoveryPlan['execution']
  startedAt: string
  identity: Identity
  /** How long a lost request may still take effect, in ms. */
  settleMs: number
}): RecoveryPlan {
  const { asked, run, folder, execution, startedAt, identity, settleMs } = options
  const { reasons, nextBilling, olderThan, breakerWaits, approval = true, dryRun = false } = asked
  return {
    run,
    execution,
    folder,
    startedAt,
    identity,
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
    verifyMs: asked.verifyAfter ?? settleMs,
    settleMs: Math.max(asked.verifyAfter ?? 0, settleMs),
    ...(breakerWaits && { breakerWaitsMs: breakerWaits }),
    limits: limitsOf(asked),
    eventsPerExecution: asked.eventsPerExecution ?? usual.eventsPerExecution,
  }
}

function limitsOf({
  requestsPerSecond,
  concurrency,
  maxChanges = usual.maxChanges,
  maxFailureShare,
}: AskedRecovery): RecoveryPlan['limits'] {
  return {
    maxChanges,
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
    ...(concurrency !== undefined && { concurrency }),
    ...(maxFailureShare !== undefined && { maxFailureShare }),
  }
}
