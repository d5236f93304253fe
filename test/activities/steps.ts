import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import { expect, onTestFinished } from 'vitest'
import { type ImportInput, type ImportPlan } from '../../core/imports/input.ts'
import type { RecoveryInput, RecoveryPlan } from '../../core/recoveries/input.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { type Sandbox, createSandbox } from '../../sandbox/sandbox.ts'
import { type Attempt, openWorker } from '../chaos/histories/worker.ts'
import { retentionsCsv } from '../system/import/world.ts'

export const newFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'import-steps-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A worker whose steps are called as Temporal calls them. */
export async function openSteps({
  files,
  mayWrite,
  ...existing
}: { files?: FileStore; mayWrite?: boolean; sandbox?: Sandbox; dataDir?: string } = {}) {
  const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }
  const { sandbox = await createSandbox({ counts }), dataDir = await newFolder() } = existing
  onTestFinished(() => sandbox.close())
  const client = new Client({ connection: Connection.lazy() })
  const worker = await openWorker({ sandbox, dataDir, settleMs: 20, readLagMs: 0, client, files, mayWrite })
  onTestFinished(() => worker.close())
  const start = (
    name: Parameters<typeof worker.start>[0]['name'],
    input: object,
    { workflowId = 'import-1', runId = 'r1', attempt = 1 } = {},
  ): Attempt =>
    worker.start({
      name,
      input,
      info: {
        workflowExecution: { workflowId, runId },
        scheduledTimestampMs: Date.now(),
        currentAttemptScheduledTimestampMs: attempt,
      },
    })
  const ofPlan =
    (name: 'stageRun' | 'sendRun' | 'proveRun' | 'closeRun') =>
    (plan: ImportPlan | RecoveryPlan, input: object = {}, attempt = 1) => {
      const limits = name !== 'closeRun' && { limits: plan.limits }
      const sending = name === 'sendRun' && { seconds: 60, breakers: {}, claims: 0 }
      const given = { ...refOf(plan), ...limits, ...sending, ...input }
      return start(name, given, { ...plan.execution, attempt }).result
    }
  const [stage, send] = [ofPlan('stageRun'), ofPlan('sendRun')]
  const [prove, close] = [ofPlan('proveRun'), ofPlan('closeRun')]
  return { sandbox, dataDir, worker, client, start, stage, send, prove, close }
}

export type Steps = Awaited<ReturnType<typeof openSteps>>

export const toOpen = (input: object) => ({ job: 'import', input, firstRunId: 'r1' })

export const refOf = ({ run, identity }: ImportPlan | RecoveryPlan) => ({ run, identity })

export async function openRows(
  { start, dataDir }: Steps,
  input: Partial<ImportInput> = {},
  runId?: string,
  csv = retentionsCsv(5),
) {
  await mkdir(join(dataDir, 'inbox'), { recursive: true })
  await writeFile(join(dataDir, 'inbox', 'rows.csv'), csv)
  const asked = { kind: 'retentions', file: 'inbox/rows.csv', canary: 0, ...input }
  return (await start('openRun', toOpen(asked), runId === undefined ? {} : { runId }).result) as ImportPlan
}

/** An import of five rows that are done. */
export async function openDone(steps: Steps, input: Partial<ImportInput> = {}, csv?: string) {
  const plan = await openRows(steps, input, undefined, csv)
  await steps.stage(plan)
  await steps.send(plan)
  return plan
}

export const numbersIn = ({ sandbox }: Steps) =>
  [...sandbox.control.records({ resource: 'retentions' })]
    .map((text) => (JSON.parse(text) as { number: number }).number)
    .toSorted((one, other) => one - other)

/** A recovery of five subscriptions. */
export async function openRecovery(input: RecoveryInput = {}) {
  const counts = { customers: 4, subscriptions: 5, plans: 2, retentions: 0, orders: 0 }
  const sandbox = await createSandbox({ counts, needsAttention: 0 })
  const fields = { status: 'needs_attention', needs_attention_reason: 'gateway_issue', cancelled: null }
  for (const id of sandbox.control.ids({ resource: 'subscriptions' }))
    sandbox.control.update({ resource: 'subscriptions', id, fields })
  const steps = await openSteps({ sandbox })
  const open = async (runId: string) => {
    const request = { job: 'recovery', input, firstRunId: runId }
    return (await steps.start('openRun', request, { workflowId: runId, runId }).result) as RecoveryPlan
  }
  return { steps, plan: await open('r1'), open }
}

/** A service with contacts, and files that change the phones of the first ones. */
export async function startContacts() {
  const counts = { customers: 20, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }
  const sandbox = await createSandbox({ counts })
  const ids = [...sandbox.control.records({ resource: 'customers' })].flatMap((text) =>
    (JSON.parse(text) as { contacts: { id: string }[] }).contacts.map(({ id }) => id),
  )
  const csvOf = (rows: number) =>
    ['id,phone', ...ids.slice(0, rows).map((id) => `${id},+5691`), ''].join('\n')
  return { sandbox, csvOf }
}

/** An import of six updates that gave up after two were refused, while one that got no answer waited to be sent again. */
export async function giveUpUpdates(end: object) {
  const { sandbox, csvOf } = await startContacts()
  const steps = await openSteps({ sandbox })
  const on = 'PATCH /contacts/{id}/'
  const lost = { kind: 'reset', effect: 'none', on, requests: [1] } as const
  const refused = { kind: 'refuse', answer: { phone: ['No.'] }, status: 400, on, from: 2 } as const
  sandbox.control.setFaults({ faults: [lost, refused] })
  const input = { kind: 'update-contacts', maxFailures: 1, concurrency: 1 } as const
  const plan = await openRows(steps, input, undefined, csvOf(6))
  await steps.stage(plan)
  const sent = await steps.send(plan)
  expect(sent).toMatchObject({ ended: 'maxFailures', counts: { unknown: 1, rejected: 2 } })
  const kept = await steps.close(plan, { how: 'finished', ...end })
  sandbox.control.setFaults({ faults: [] })
  const report = JSON.parse(await readFile(join(steps.dataDir, plan.folder, 'report.json'), 'utf8')) as {
    next: { text: string }[]
  }
  return { ...steps, kept, next: report.next.map(({ text }) => text) }
}
