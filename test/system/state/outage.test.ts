import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client as Temporal, Connection } from '@temporalio/client'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { PartResult } from '../../../activities/export/read.ts'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import type { ImportPlan } from '../../../core/imports/input.ts'
import type { RecoveryPlan } from '../../../core/recoveries/input.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'
import type { JobName } from '../../../core/runs/run-notes.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { createSandbox } from '../../../sandbox/sandbox.ts'
import { openWorker, type StepName } from '../../chaos/histories/worker.ts'
import { type Postgres, startPostgres } from '../destinations/postgres-server.ts'
import { retentionsCsv } from '../import/world.ts'

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.close())

const newFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'outage-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** How PostgreSQL goes away: before it carries a statement out, or before its answer arrives. */
type Loss = 'request' | 'answer'

/** The pause before an attempt repeats its step grows. */
const mostLost = 3

/**
 * Loses the first statement of each kind that a step sends to a database, a few in an attempt, so that a run is lived
 * through again until none is new.
 */
function loseStatements(loss: Loss, url: string) {
  const lost = new Set<string>()
  let step: StepName | undefined
  let left = 0
  const prototype = Client.prototype as unknown as { query: (...of: unknown[]) => Promise<unknown> }
  const { query } = prototype
  prototype.query = async function losing(this: Client, ...of: unknown[]) {
    const text = String(of[0])
    const kind = `${step}: ${text.replaceAll(/\$\d+(, \$\d+)*|\(\$.*\)/g, '?')}`
    const isReading = /^(select|begin|rollback)/.test(text)
    const isOurs = left > 0 && url.endsWith(`/${this.database}`) && !lost.has(kind)
    // The clock is measured now and then, not by a step. What was only read is lost either way.
    if (!isOurs || text.includes('clock_timestamp') || (loss === 'answer' && isReading))
      return await query.apply(this, of)
    lost.add(kind)
    left -= 1
    if (loss === 'answer') await query.apply(this, of)
    throw new Error('Connection terminated unexpectedly')
  }
  onTestFinished(() => {
    prototype.query = query
  })
  return {
    lost: lost as ReadonlySet<string>,
    async during<T>(name: StepName, work: () => Promise<T>): Promise<T> {
      step = name
      left = mostLost
      return await work().finally(() => (left = 0))
    },
  }
}

async function startFleet(loss: Loss, files?: FileStore) {
  const counts = { customers: 3, subscriptions: 60, plans: 1, retentions: 0, orders: 0 }
  const sandbox = await createSandbox({ counts, needsAttention: 0 })
  onTestFinished(() => sandbox.close())
  const url = await postgres.createDatabase()
  const worker = await openWorker({
    sandbox,
    dataDir: await newFolder(),
    settleMs: 20,
    readLagMs: 0,
    client: new Temporal({ connection: Connection.lazy() }),
    files,
    database: { url, schema: 'connector_acc_1' },
  })
  onTestFinished(() => worker.close())
  const losing = loseStatements(loss, url)
  return {
    sandbox,
    ledger: worker.state.ledger,
    /** One attempt of a step: what is not repeated in it fails. */
    attempt: async (name: StepName, input: object, run: string) => {
      const now = Date.now()
      const info = {
        workflowExecution: { workflowId: run, runId: `${run}-1` },
        scheduledTimestampMs: now,
        currentAttemptScheduledTimestampMs: now,
        startToCloseTimeoutMs: 600_000,
      }
      return await losing.during(name, () => worker.start({ name, input, info }).result)
    },
    /** Lives until no statement is lost any more; gives the steps that lost one. */
    live: async (life: (run: string, number: number) => Promise<void>): Promise<string[]> => {
      for (let number = 1, before = -1; before < losing.lost.size; number += 1) {
        before = losing.lost.size
        await life(`run-${number}`, number)
      }
      return [...new Set([...losing.lost].map((kind) => kind.split(':')[0] ?? ''))]
    },
  }
}

const refOf = ({ run, identity }: Pick<ImportPlan, 'run' | 'identity'>) => ({ run, identity })
const toOpen = (job: JobName, run: string, input: object) => ({ job, input, firstRunId: `${run}-1` })
const sendAll = { seconds: 60, breakers: {}, claims: 0 }
const end = { how: 'finished' }
const person = { by: 'ann', why: 'seen' }

async function importRows(loss: Loss) {
  const files = createFolderStore(await newFolder())
  const { sandbox, ledger, attempt, live } = await startFleet(loss, files)
  let rows = 0
  const steps = await live(async (run, number) => {
    await files.create(`inbox/${run}.csv`, retentionsCsv(3, { from: 10 * number }))
    rows += 3
    const input = { kind: 'retentions', file: `inbox/${run}.csv`, canary: 0 }
    const plan = (await attempt('openRun', toOpen('import', run, input), run)) as ImportPlan
    const of = { ...refOf(plan), limits: plan.limits }
    await attempt('stageRun', of, run)
    expect(await attempt('sendRun', { ...of, ...sendAll }, run)).toMatchObject({ ended: 'finished' })
    const [{ id, row, answerId }] = (await ledger.page({ run: plan.run, limit: 1 })) as [LedgerRow]
    const parked = { state: 'parked', outcome: 'otherContents', closedAt: 1 } as const
    await ledger.move({ id, from: ['done'], patch: parked })
    await attempt('noteDecision', { ...of, decision: { at: 'now', about: 'limits', ...person } }, run)
    const decision = { exists: answerId }
    await attempt('resolveRow', { ...of, id: 'update-1', rows: [row], decision, ...person }, run)
    expect(await attempt('proveRun', of, run)).toMatchObject({ found: 3, reasons: [] })
    await attempt('skipRemaining', { ...of, why: 'stopped' }, run)
    const closed = await attempt('closeRun', { ...of, ...end }, run)
    expect(closed).toMatchObject({ result: { counts: { done: 3 } } })
  })
  return { steps, sent: sandbox.control.ids({ resource: 'retentions' }).length, rows }
}

async function recover(loss: Loss) {
  const { sandbox, attempt, live } = await startFleet(loss)
  const ids = sandbox.control.ids({ resource: 'subscriptions', mode: 'live' }).map(String)
  const broken = { status: 'needs_attention', needs_attention: '2026-11-20T10:00:00.123456-03:00' }
  const fields = { ...broken, needs_attention_reason: 'gateway_issue', cancelled: null, paused: null }
  const brokenIds: string[] = []
  const steps = await live(async (run, number) => {
    const id = ids[number - 1]!
    brokenIds.push(id)
    sandbox.control.update({ resource: 'subscriptions', mode: 'live', id, fields })
    const input = { approval: false, verifyAfter: '30ms', firstWait: '50ms', coolDown: 0 }
    const plan = (await attempt('openRun', toOpen('recovery', run, input), run)) as RecoveryPlan
    const of = { ...refOf(plan), limits: plan.limits }
    expect(await attempt('stageRun', of, run)).toMatchObject({ open: 1 })
    expect(await attempt('sendRun', { ...of, ...sendAll }, run)).toMatchObject({ ended: 'finished' })
    const closed = await attempt('closeRun', { ...of, ...end }, run)
    expect(closed).toMatchObject({ result: { counts: { done: 1 } } })
  })
  const resumed = sandbox.control
    .effects()
    .flatMap(({ effect, id }) => (effect === 'resume' ? [String(id)] : []))
  return { steps, resumed, brokenIds }
}

async function exportCustomers(loss: Loss) {
  const { attempt, live } = await startFleet(loss)
  return await live(async (run) => {
    const input = { resources: ['customers'], to: ['csv'] }
    const { plan } = (await attempt('openExport', input, run)) as { plan: ExportPlan }
    const of = { ...refOf(plan), resource: 'customers' }
    await attempt('planRead', of, run)
    await attempt('readRange', { ...of, range: 0, seconds: 60 }, run)
    const { ended } = (await attempt('finishRead', { ...of, seconds: 60 }, run)) as PartResult
    const to = { destination: 'csv', checkpoint: typeof ended === 'object' ? ended.checkpoint : undefined }
    const exported = await attempt('publishExport', { ...of, ...to }, run)
    expect(exported).toMatchObject({ verdict: 'proven', records: 3 })
    const closed = await attempt('closeExport', { ...refOf(plan), exports: [exported] }, run)
    expect(closed).toMatchObject({ report: { verdict: 'proven' } })
    await attempt('openPublish', { run: plan.run }, `${run}-again`)
    const again = { ...refOf(plan), exports: [], again: { to: ['csv'] } }
    await attempt('closeExport', again, `${run}-again`)
  })
}

const writeSteps = ['openRun', 'stageRun', 'sendRun', 'closeRun'].toSorted()
const operatorSteps = ['noteDecision', 'resolveRow', 'skipRemaining']
const exportSteps = ['openExport', 'planRead', 'readRange', 'finishRead', 'publishExport', 'closeExport']

test.each(['request', 'answer'] as const)(
  'the attempt of a step outlives an outage of PostgreSQL at each kind of statement, and each change is made once: the %s is lost',
  { tags: ['long'] },
  async (loss) => {
    const [imported, recovered, exported] = await Promise.all([
      importRows(loss),
      recover(loss),
      exportCustomers(loss),
    ])
    expect(imported.steps.toSorted()).toEqual([...writeSteps, ...operatorSteps, 'proveRun'].toSorted())
    expect(imported.sent).toBe(imported.rows)
    expect(recovered.steps.toSorted()).toEqual(writeSteps)
    expect(recovered.resumed).toEqual(recovered.brokenIds)
    expect(exported.toSorted()).toEqual([...exportSteps, 'openPublish'].toSorted())
  },
)
