import type { WorkflowHandle } from '@temporalio/client'
import { Client, Connection } from '@temporalio/client'
import { setTimeout as wait } from 'node:timers/promises'
import type { ImportResult } from '../../../core/imports/view.ts'
import type { RecoveryReport } from '../../../core/recoveries/view.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import { openState } from '../../../core/state/open.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { openFiles } from '../../../worker/files.ts'
import { readPlaces } from '../../../worker/settings/settings.ts'
import { environmentOf } from '../../acceptance/bucket/gateway.ts'
import { type Postgres, startPostgres } from '../../system/destinations/postgres-server.ts'
import { openWorld, type World } from '../../system/export/world.ts'
import { addonsCsv, putFile, retentionsCsv, startImport, timesOf } from '../../system/import/world.ts'
import { breakSome, idsOf, startRecovery } from '../../system/recovery/world.ts'
import { excessOf, judgeRecovery } from '../histories/judge.ts'
import type { Tally } from '../tally.ts'
import { type Fleet, startFleet } from './fleet.ts'

export interface FleetOptions {
  seed: number
  tally: Tally
  temporal: { address: string; binary: string }
  workers: number
  /** How many changes there are of each kind. */
  changes: { retentions: number; addons: number; subscriptions: number }
  requestsPerSecond: number
  /** How long the service keeps an idle connection open. */
  idleMs: number
  /** Whether what leaves late may double a row, which is then marked. */
  mayDouble?: boolean
  /** Each worker's folder is lost with it, and the one in its place has an empty one. */
  bucket: Bucket
  strike: (stage: Stage) => Promise<void>
}

/** An object store. */
export interface Bucket {
  endpoint: string
  /** Nobody reaches it for so long. Undefined for one that never fails. */
  lose?: (ms: number) => Promise<void>
}

/** A run that the fleet works on. */
export interface FleetRun {
  job: 'import' | 'recovery'
  /** What its requests are about. */
  resource: string
  handle: WorkflowHandle
}

/** What is struck. */
export interface Stage {
  world: World
  fleet: Fleet
  postgres: Postgres
  bucket: Bucket
  runs: readonly FleetRun[]
  tally: Tally
  isOver: () => boolean
}

/** After so long, something is stuck. */
const longestMs = 20 * 60_000

/**
 * Plays imports of retentions and addons and a recovery by several workers on one state on PostgreSQL, which `strike`
 * disturbs, with everything real; gives what was found wrong.
 */
export async function playFleet(options: FleetOptions): Promise<string[]> {
  const { seed, tally, temporal, workers, changes, idleMs, strike } = options
  await using left = new AsyncDisposableStack()
  const postgres = left.adopt(await startPostgres(), (server) => server.close())
  const world = left.adopt(await openFleetWorld(options), (opened) => opened.close())
  const url = await postgres.createDatabase()
  const env = {
    ...world.env,
    CONNECTOR_STATE_URL: url,
    BILLING_SETTLE_SECONDS: '0.5',
    BILLING_REQUESTS_PER_SECOND: `${options.requestsPerSecond}`,
    CONNECTOR_LOG_LEVEL: 'error',
    ...environmentOf(options.bucket.endpoint),
    CONNECTOR_FILES_URL: `s3://exports/${world.workspace}`,
  }
  const started = await startFleet({ env, workers, temporalAddress: temporal.address, idleMs })
  const fleet = left.adopt(started, (all) => all.close())
  const connection = left.adopt(await Connection.connect({ address: temporal.address }), (open) =>
    open.close(),
  )
  const broken = breakSome(world, { ids: idsOf(world), reason: 'gateway_issue' })
  const client = new Client({ connection })
  const files = openFiles(readPlaces({ env, cwd: world.dataDir }))
  const runs = await startRuns({ client, world, changes, files })
  const found: string[] = []
  const named = (finding: string) => `fleet, seed ${seed}: ${finding}`
  const ended = { isTrue: false }
  const results = Promise.all(runs.map(resultOf))
  void results.finally(() => (ended.isTrue = true))
  const isOver = () => ended.isTrue
  while (!isOver() && timesOf(world, 'retentions', changes.retentions).every((times) => times === 0))
    await wait(20)
  await strike({ world, fleet, postgres, bucket: options.bucket, runs, tally, isOver })
  const late = setTimeout(() => void terminate(runs), longestMs)
  const all = await results.finally(() => clearTimeout(late))
  for (const { failure } of all) if (failure !== undefined) found.push(failure)
  found.push(...fleet.lost)
  if (all.some(({ failure }) => failure !== undefined)) return found.map(named)
  const result = (resource: string) => all[runs.findIndex((run) => run.resource === resource)]?.result
  const retentions = result('retentions') as ImportResult
  const addons = result('addons') as ImportResult | undefined
  const recovery = result('subscriptions') as RecoveryReport
  const read = await openState({
    folder: world.dataDir,
    database: { url, schema: `connector_${world.workspace}` },
    readOnly: true,
  })
  left.defer(() => read.close())
  const rowsOf = async (run: string) => await Array.fromAsync(read.ledger.rows({ run }))
  const rows = { retentions: await rowsOf(retentions.run), recovery: await rowsOf(recovery.run) }
  found.push(
    ...judgeRetentions({ ...options, world, result: retentions, rows: rows.retentions }),
    ...(addons === undefined ? [] : judgeAddons({ ...options, world, result: addons })),
    ...excessOf({ sandbox: world.sandbox, attempts }),
    ...judgeRecovery({ result: recovery, rows: rows.recovery, sandbox: world.sandbox, since: 0 }),
  )
  for (const { state, outcome } of rows.recovery) tally.add(`fleet: subscriptions ${state} ${outcome}`)
  if (rows.recovery.length !== broken.length)
    found.push(`the recovery has ${rows.recovery.length} of ${broken.length} subscriptions`)
  return found.map(named)
}

/** Never rejects: the others go on. */
async function resultOf({
  job,
  resource,
  handle,
}: FleetRun): Promise<{ result?: unknown; failure?: string }> {
  try {
    return { result: await handle.result() }
  } catch (error) {
    const causes = (of: unknown): string => (of instanceof Error ? `${of.message} ${causes(of.cause)}` : '')
    return { failure: `the ${job} of ${resource} failed: ${causes(error)}` }
  }
}

/** What is stuck ends as a failure. */
async function terminate(runs: readonly FleetRun[]): Promise<void> {
  const reason = `not ended after ${longestMs / 60_000} minutes`
  await Promise.allSettled(runs.map(({ handle }) => handle.terminate(reason)))
}

function openFleetWorld({ seed, changes, temporal }: FleetOptions): Promise<World> {
  return openWorld(
    {
      seed,
      counts: {
        customers: 20,
        subscriptions: changes.subscriptions,
        plans: 3,
        retentions: 0,
        orders: 0,
      },
      needsAttention: 0,
      faults: [
        { kind: 'latency', ms: 100, where: 'before', rate: 0.2 },
        { kind: 'latency', ms: 30, where: 'after' },
        // Lost replies: those are looked up.
        {
          kind: 'reset',
          effect: 'done',
          on: ['POST /retentions/', 'POST /addons/', 'POST /subscriptions/{id}/resume/'],
          rate: 0.03,
        },
        { kind: 'fallBack', rate: 0.1 },
      ],
    },
    temporal,
  )
}

const attempts = 2

async function startRuns(options: {
  client: Client
  world: World
  changes: FleetOptions['changes']
  files: FileStore | undefined
}): Promise<FleetRun[]> {
  const { client, world, changes, files } = options
  const importOf = async (kind: 'retentions' | 'addons', text: string) => {
    const file = await putFile(world, text, `${kind}.csv`)
    await files?.create(file, text)
    const input = { kind, file, verifyAfter: 0.5, canary: 0, maxFailureShare: 1, existing: 'refuse' } as const
    return { job: 'import' as const, resource: kind, handle: await startImport({ client, world, input }) }
  }
  const input = {
    approval: false,
    canary: 0,
    attempts,
    verifyAfter: 0.5,
    firstWait: 0.2,
    coolDown: 0,
    maxFailureShare: 1,
  } as const
  return [
    await importOf('retentions', retentionsCsv(changes.retentions)),
    ...(changes.addons > 0 ? [await importOf('addons', addonsCsv(changes.addons))] : []),
    { job: 'recovery', resource: 'subscriptions', handle: await startRecovery({ client, world, input }) },
  ]
}

/** Each retention is there once, or marked as doubled where that may happen. */
function judgeRetentions(options: {
  world: World
  changes: FleetOptions['changes']
  tally: Tally
  mayDouble?: boolean
  result: ImportResult
  rows: readonly LedgerRow[]
}): string[] {
  const { world, changes, tally, mayDouble = false, result, rows } = options
  const times = timesOf(world, 'retentions', changes.retentions)
  const of = (number: (times: number) => boolean) =>
    times.flatMap((each, index) => (number(each) ? [index + 1] : []))
  const [lost, doubled] = [of((each) => each === 0), of((each) => each > 1)]
  const marked = rows.filter(({ outcome }) => outcome === 'doubled').map(({ body }) => nameOf(body))
  const unmarked = doubled.filter((number) => !marked.includes(`Honorarios ${number}`))
  tally.add('fleet: retentions in the service once', of((each) => each === 1).length)
  tally.add('fleet: retentions lost', lost.length)
  tally.add('fleet: retentions doubled', doubled.length)
  tally.add('fleet: retentions marked as doubled', marked.length)
  return [
    ...(lost.length > 0 ? [`lost: retentions ${lost.join(', ')}`] : []),
    ...(doubled.length > 0 && !mayDouble ? [`doubled: retentions ${doubled.join(', ')}`] : []),
    ...(unmarked.length > 0 ? [`doubled and not marked: retentions ${unmarked.join(', ')}`] : []),
    ...(marked.length > doubled.length ? [`marked as doubled: ${marked.join(', ')}`] : []),
    ...(result.verdict === 'proven' && result.counts.done === changes.retentions
      ? []
      : [`the import of retentions is ${result.verdict}: ${JSON.stringify(result.counts)}`]),
  ]
}

const nameOf = (body: string) => (JSON.parse(body) as { lines?: { name?: string }[] }).lines?.[0]?.name

/** No addon is there twice; those that are done are there, and the others need a person. */
function judgeAddons(options: {
  world: World
  changes: FleetOptions['changes']
  tally: Tally
  result: ImportResult
}): string[] {
  const { world, changes, tally, result } = options
  const times = timesOf(world, 'addons', changes.addons)
  const { done, parked } = result.counts
  const there = times.filter((each) => each > 0).length
  const doubled = times.filter((each) => each > 1).length
  tally.add('fleet: addons in the service once', there - doubled)
  tally.add('fleet: addons doubled', doubled)
  tally.add('fleet: addons parked', parked)
  tally.add('fleet: addons parked and not in the service', changes.addons - there)
  return [
    ...(doubled > 0 ? [`doubled: ${doubled} addons`] : []),
    ...(done + parked === changes.addons ? [] : [`of the addons are ${JSON.stringify(result.counts)}`]),
    ...(there < done ? [`${done} addons are called done and ${there} are there`] : []),
  ]
}
