import { join } from 'node:path'
import { readDecisions } from '../runs/run-files.ts'
import type { CopiedInput } from './upload.ts'
import { importKinds } from './kinds.ts'
import { type ImportLimits, type ImportPlan, runFiles } from './plan.ts'
import { readPlan } from './run-files.ts'
import type { Identity } from '../runs/identity.ts'
import type { Execution } from '../runs/name.ts'
import type { AskedImport } from './input.ts'

/** Two hours: long enough for an operator's lunch, short enough that prices and people stay the same. */
const defaultApprovalMs = 2 * 3_600_000
const defaultCanary = 3

interface PlanOptions {
  deps: {
    dataDir: string
    identity: Identity
    /** How long a lost request may still take effect. */
    settleMs: number
  }
  execution: Execution
  /** When the run was first started (ISO 8601). */
  startedAt: string
  asked: AskedImport
  copied: CopiedInput
  run: string
  /** The run's folder, relative to the data folder. */
  folder: string
  fingerprint: string
  source: string
}

/** Applies defaults to the input, and what was approved in the same run before. */
export async function toImportPlan(options: PlanOptions): Promise<ImportPlan> {
  const { deps, asked, execution, run, folder, fingerprint, source } = options
  const decisions = await readDecisions(join(deps.dataDir, folder))
  const before = await readPlan(join(deps.dataDir, folder))
  const { does, one, listed = false } = importKinds[asked.kind]
  return {
    run,
    execution,
    startedAt: before?.startedAt ?? options.startedAt,
    identity: deps.identity,
    kind: asked.kind,
    does,
    resource: `${one}s`,
    listed,
    source,
    folder,
    fingerprint,
    ...inputOf(options),
    ...policiesOf(asked),
    ...approvalSettings(options),
    limits: limitsOf(asked),
    decided: {
      approval: decisions.some(({ about }) => about === 'approval'),
      canary: decisions.some(({ about }) => about === 'canary'),
    },
  }
}

function inputOf({ asked, copied, folder }: PlanOptions) {
  const at = (name: string) => join(folder, runFiles.input, name)
  return {
    file: at(copied.file),
    mapping: at(copied.mapping),
    ...(asked.columns !== undefined && { columns: asked.columns }),
  }
}

function policiesOf(asked: AskedImport) {
  return {
    dryRun: asked.dryRun ?? false,
    onInvalid: asked.onInvalid ?? 'stop',
    done: asked.done ?? 'refuse',
    existing: asked.existing ?? 'refuse',
    sendAgain: asked.sendAgain ?? [],
    ...(asked.onlyResolved === true && { onlyResolved: true }),
    expect: {
      ...(asked.expectRows !== undefined && { rows: asked.expectRows }),
      ...(asked.expectTotals !== undefined && { totals: asked.expectTotals }),
    },
  } as const
}

function approvalSettings({ deps, asked }: PlanOptions) {
  const { approval = false, approvalWait, breakerWaits, verifyAfter } = asked
  const { does } = importKinds[asked.kind]
  return {
    canary: asked.canary ?? defaultCanary,
    approval: approval || does === 'delete',
    confirmCanary: does !== 'update' && (asked.confirmCanary ?? false),
    attended: asked.attended === true || approval,
    approvalMs: approvalWait ?? defaultApprovalMs,
    settleMs: verifyAfter ?? deps.settleMs,
    ...(breakerWaits && { breakerWaitsMs: breakerWaits }),
  }
}

function limitsOf({
  requestsPerSecond,
  concurrency,
  maxChanges,
  maxFailures,
  maxFailureShare,
}: AskedImport): ImportLimits {
  return {
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
    ...(concurrency !== undefined && { concurrency }),
    ...(maxChanges !== undefined && { maxChanges }),
    ...(maxFailures !== undefined && { maxFailures }),
    ...(maxFailureShare !== undefined && { maxFailureShare }),
  }
}
