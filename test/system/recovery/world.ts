import type { Client, WorkflowHandle, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client'
import { readFile } from 'node:fs/promises'
import { parse } from 'csv-parse/sync'
import type { RecoveryReport } from '../../../core/recoveries/view.ts'
import type { RecoveryInput } from '../../../core/recoveries/input.ts'
import type { Reason } from '../../../core/recoveries/reasons.ts'
import type { RecoveryProgress } from '../../../workflows/write-run/progress.ts'
import type { recoverSubscriptions } from '../../../workflows/recover-subscriptions.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { connectTemporal, createWorld, startTestWorker, type World } from '../export/world.ts'

export type RecoveryHandle = WorkflowHandleWithFirstExecutionRunId<typeof recoverSubscriptions>

/** The operation that resumes, as the sandbox names it. */
export const resume = 'POST /subscriptions/{id}/resume/'

/** Subscriptions that are all well, until the test breaks some. */
const wellCounts = { customers: 20, subscriptions: 60, plans: 3, retentions: 0, orders: 0 }
export const well = { counts: wellCounts, needsAttention: 0 } as const

/** Looks after milliseconds, and waits for nobody. */
export const quick = {
  approval: false,
  verifyAfter: '30ms',
  firstWait: '50ms',
  coolDown: 0,
  maxFailureShare: 1,
} as const satisfies RecoveryInput

export const idsOf = (world: World, mode: 'live' | 'test' = 'live'): string[] =>
  world.sandbox.control.ids({ resource: 'subscriptions', mode }).map(String)

/** Puts subscriptions into needs_attention, as an incident does. */
export function breakSome(
  world: World,
  options: {
    ids: readonly string[]
    reason: Reason
    since?: string
    fields?: Record<string, unknown>
    mode?: 'live' | 'test'
  },
): string[] {
  const { ids, reason, since = '2026-11-20T10:00:00.123456-03:00', fields = {}, mode = 'live' } = options
  for (const id of ids)
    world.sandbox.control.update({
      resource: 'subscriptions',
      mode,
      id,
      fields: {
        status: 'needs_attention',
        needs_attention: since,
        needs_attention_reason: reason,
        cancelled: null,
        paused: null,
        ...fields,
      },
    })
  return [...ids]
}

export const stateOf = (world: World, id: string) =>
  world.sandbox.control.get({ resource: 'subscriptions', id }) as {
    status: string
    needs_attention_reason: string | null
    next_billing: string
    customer: string
    lines: { id: string }[]
  }

/** The resumes that the sandbox received, and those it carried out, by subscription. */
export const resumesAsked = (world: World): string[] =>
  world.sandbox.control
    .requests()
    .flatMap(({ method, url }) =>
      method === 'POST' ? (/\/subscriptions\/([^/]+)\/resume\/$/.exec(url)?.[1] ?? []) : [],
    )

export const resumesDone = (world: World): string[] =>
  world.sandbox.control.effects().flatMap(({ effect, id }) => (effect === 'resume' ? [String(id)] : []))

let runs = 0

export async function startRecovery(options: {
  client: Client
  world: World
  input?: RecoveryInput
  name?: string
}): Promise<RecoveryHandle> {
  runs += 1
  const { client, world, input, name = `recover-${world.workspace}-${runs}` } = options
  return client.workflow.start<typeof recoverSubscriptions>('recoverSubscriptions', {
    workflowId: name,
    taskQueue: world.taskQueue,
    args: input === undefined ? [] : [input],
  })
}

export const statusOf = (run: RecoveryHandle) => run.query<RecoveryProgress>('status')

/** recovery.csv, by subscription. */
export async function recoveryCsv(
  result: Pick<RecoveryReport, 'files'>,
): Promise<Map<string, Record<string, string>>> {
  const text = await readFile(result.files.results ?? '', 'utf8')
  const rows = parse<Record<string, string>>(text, { columns: true })
  return new Map(rows.map((row) => [row['subscription'] ?? '', row]))
}

export const failureOf = async (run: Pick<WorkflowHandle, 'result'>) => {
  const error = await run.result().then(
    () => undefined,
    (failure: Error) => failure,
  )
  return (error as { cause?: { type?: string; message?: string } } | undefined)?.cause
}

/** A service that is well but for what a gateway incident broke, and a worker. */
export async function begin(
  options: { broken?: number; sandbox?: SandboxOptions; env?: Record<string, string> } = {},
) {
  const world = await createWorld({ ...well, ...options.sandbox })
  await startTestWorker(world, { BILLING_SETTLE_SECONDS: '0.3', ...options.env })
  const client = await connectTemporal()
  const ids = idsOf(world).slice(0, options.broken ?? 20)
  breakSome(world, { ids, reason: 'gateway_issue' })
  const start = (input: RecoveryInput = quick, name?: string) =>
    startRecovery({ client, world, input, ...(name !== undefined && { name }) })
  return { world, client, ids, start }
}
