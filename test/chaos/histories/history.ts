import { randomUUID } from 'node:crypto'
import { type WorkflowHandle, WorkflowFailedError } from '@temporalio/client'
import { ApplicationFailure, rootCause, TerminatedFailure } from '@temporalio/common'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createSandbox } from '../../../sandbox/sandbox.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import type { ImportInput } from '../../../core/imports/input.ts'
import { planOf } from '../../../scripts/runs/run-files.ts'
import type { RecoveryInput } from '../../../core/recoveries/input.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import type { WriteProgress } from '../../../workflows/write-run/progress.ts'
import { ExportJudge } from './export-judge.ts'
import { chooseListFaults, chooseServiceFaults, lateSeconds } from './faults.ts'
import { doublesOf, excessOf, judgeImport, judgeRecovery } from './judge.ts'
import { Random } from '../random.ts'
import type { Runner } from './runner.ts'
import { createSubject, type SubjectName, subjectNames } from './subjects.ts'
import type { Tally } from '../tally.ts'
import { settleMs, World } from './surroundings.ts'

export const jobs = [...subjectNames, 'recovery', 'exports'] as const
export type Job = (typeof jobs)[number]

/** The same command so often while things go wrong, and so often after that, to its end. */
const stormyCommands = 3
const calmCommands = 6

const rows = 12
const attempts = 2

/** Plays one history that the seed decides; gives what was found wrong, empty where all promises were kept. */
export async function playHistory({
  runner,
  seed,
  job,
  tally,
}: {
  runner: Runner
  seed: number
  job: Job
  tally: Tally
}): Promise<string[]> {
  const random = new Random(seed)
  const sandbox = await createSandbox({ seed, needsAttention: 1, counts: countsFor(job) })
  // So that an incremental export has to rely on its watermark, and not on how far behind it begins.
  const readLagMs = job === 'exports' ? 0 : 60_000
  const world = await World.open({ runner, sandbox, random: random.fork(), tally, readLagMs })
  try {
    const found = await play({ job, world, random, tally })
    for (const { faults = [] } of sandbox.control.requests())
      for (const name of faults) tally.add(`service: ${name}`)
    return found.map((finding) => `${job}, seed ${seed}: ${finding} [${world.log.join('; ')}]`)
  } finally {
    await world.close()
  }
}

function countsFor(job: Job) {
  const none = { customers: 20, subscriptions: 0, plans: 2, retentions: 0, creditnotes: 0, cancellations: 0 }
  if (job === 'recovery') return { ...none, subscriptions: rows }
  if (job === 'update-subscriptions') return { ...none, subscriptions: 2 * rows }
  if (job === 'exports') return { ...none, customers: 450, subscriptions: 330, retentions: 260 }
  return { ...none, orders: 2 * rows }
}

async function play({ job, ...play }: Play & { job: Job }): Promise<string[]> {
  if (job === 'recovery') return await playRecoveries(play)
  return job === 'exports' ? await playExports(play) : await playImport({ ...play, name: job })
}

interface Play {
  world: World
  random: Random
  tally: Tally
}

/** The service behaves badly, and blows fall, while there are commands left to suffer it. */
function weather({ world, random }: Play, command: number, choose = chooseServiceFaults): void {
  const isStormy = command <= stormyCommands
  const { faults, names } = isStormy ? choose(random) : { faults: [], names: [] }
  world.sandbox.control.setFaults({ faults })
  world.blows = isStormy ? 1 + random.below(4) : 0
  world.log.push(`command ${command}${names.length > 0 ? ` (${names.join(', ')})` : ''}`)
}

/** Undefined where it has no report: it was stopped before anything, or terminated. */
async function unlessEnded<T>(world: World, play: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await play()
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error
    const isTerminated = error.cause instanceof TerminatedFailure
    world.log.push(isTerminated ? 'terminated' : `failed: ${rootCause(error.cause)}`)
    return undefined
  }
}

async function playImport({ name, ...play }: Play & { name: SubjectName }): Promise<string[]> {
  const { world, random, tally } = play
  const { sandbox } = world
  const subject = createSubject({ name, sandbox, rows: random.happens(0.4) ? 2 * rows : rows })
  const inbox = join(world.worker().dataDir, 'inbox')
  mkdirSync(inbox)
  writeFileSync(join(inbox, 'rows.csv'), subject.csv)
  const file = join('inbox', 'rows.csv')
  world.seconds = random.pick([0.02, 0.2, 1])
  const input: ImportInput = {
    kind: name,
    file,
    verifyAfter: settleMs / 1_000,
    breakerWaits: [0.02, 0.02],
    maxFailureShare: random.pick([0.5, 1]),
    canary: random.pick([0, 2]),
    existing: 'skip',
    concurrency: random.pick([1, 4]),
  }
  for (let command = 1; command <= stormyCommands + calmCommands; command += 1) {
    weather(play, command)
    const result = await unlessEnded(world, () =>
      world.play('importFile', 'import', input, name === 'delete-orders' ? approveDeletes : undefined),
    )
    tally.add('commands')
    await world.settle()
    const findings = [...doublesOf(subject), ...(result ? await judgeImport({ result, subject }) : [])]
    if (findings.length > 0) return findings
    if (result !== undefined) tally.add(`import ${result.verdict}`)
    if (command <= stormyCommands || result === undefined) continue
    const { parked, unknown, staged } = result.counts
    if (parked + unknown + staged === 0) {
      for (const [state, number] of Object.entries(result.counts)) tally.add(`rows ${state}`, number)
      return []
    }
    await lookAsPerson({ world, made: subject.made() })
  }
  return [`is not finished after ${calmCommands} commands in which nothing went wrong`]
}

/** Deletes wait for a person who types how many there are. */
async function approveDeletes(run: WorkflowHandle): Promise<void> {
  const { waitingFor } = await run.query<WriteProgress>('status')
  if (waitingFor?.question === 'approval')
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'counted', count: waitingFor.count }] })
}

/** A person looks at what is parked, and says the truth. */
async function lookAsPerson({
  world,
  made,
}: {
  world: World
  made: ReturnType<ReturnType<typeof createSubject>['made']>
}): Promise<void> {
  const worker = world.worker()
  const plan = (await planOf({ state: { folder: worker.dataDir } }, world.handle().workflowId))!
  for await (const row of worker.state.ledger.rows({ run: plan.run, state: 'parked' })) {
    const [id] = made.get(valueOf(row)) ?? []
    const decision = id === undefined ? { absent: true } : { exists: id }
    const { run, identity } = plan
    const input = { run, identity, rows: [row.row], decision, by: 'Ana', why: 'looked' }
    const { runId } = await world.handle().describe()
    const info = { workflowExecution: { workflowId: run, runId }, scheduledTimestampMs: Date.now() }
    const decide = () =>
      worker.start({ name: 'resolveRow', input: { ...input, id: randomUUID() }, info }).result
    // A person checks a row that a restore has parked once more.
    await decide().catch(async (error: unknown) => {
      if (!(error instanceof ApplicationFailure && error.type === 'RestoredRowError')) throw error
      await decide()
    })
  }
}

function valueOf({ body }: LedgerRow): string {
  const { id, number, name } = JSON.parse(body) as Record<string, unknown>
  return String(id ?? number ?? name)
}

async function playRecoveries(play: Play): Promise<string[]> {
  const { world, random, tally } = play
  const { sandbox } = world
  world.seconds = random.pick([0.02, 0.2, 1])
  const input: RecoveryInput = {
    approval: false,
    reasons: [
      'biller_issue',
      'gateway_issue',
      'reference_expired',
      'without_usage_records',
      'processing_issue',
      'without_reference',
    ],
    attempts,
    canary: random.pick([0, 1]),
    firstWait: 0.02,
    longestWait: 0.02,
    coolDown: 0,
    verifyAfter: settleMs / 1_000,
    breakerWaits: [0.02, 0.02],
    maxFailureShare: random.pick([0.5, 1]),
    concurrency: random.pick([1, 4]),
  }
  for (let command = 1; command <= stormyCommands + 1; command += 1) {
    weather(play, command)
    let since = sandbox.control.mark()
    // Requests of a terminated run may still take effect: those resumes are not this run's.
    const left = world.worker().underWay()
    void left?.then(() => wait(lateSeconds * 1_000)).then(() => (since = sandbox.control.mark()))
    const result = await unlessEnded(world, () =>
      world.play('recoverSubscriptions', `recovery-${command}`, input),
    )
    tally.add('commands')
    await world.settle()
    const rows: LedgerRow[] = []
    for await (const row of world.worker().state.ledger.rows({ run: result?.run ?? '' })) rows.push(row)
    const findings = [
      // Where nobody can know how often something was resumed, it counts as once.
      ...excessOf({ sandbox, attempts: attempts + world.forgotten * (attempts - 1) }),
      ...(result ? judgeRecovery({ result, rows, sandbox, since }) : []),
    ]
    if (findings.length > 0) return findings
    if (result !== undefined) tally.add(`recovery ${result.verdict}`)
    if (command > stormyCommands)
      for (const row of rows) tally.add(`subscriptions ${row.state} ${row.outcome}`)
  }
  return []
}

/** Each list drifts, and each run reads some of them, whole or since its watermark. */
async function playExports(play: Play): Promise<string[]> {
  const { world, random, tally } = play
  const { sandbox } = world
  const lists = random.pick([
    ['customers'],
    ['subscriptions', 'retentions'],
    ['customers', 'subscriptions'],
  ] as const)
  // How long before it becomes visible a record says that it was changed.
  const lateBySeconds = random.pick([0, 3])
  const amounts = () => ({
    deletes: random.below(3),
    inserts: random.below(3),
    updates: random.below(3),
    restores: random.below(2),
    lateCommits: lateBySeconds > 0 ? random.below(2) : 0,
  })
  world.seconds = random.pick([0.02, 0.1, 1])
  const judge = new ExportJudge({ sandbox, tally })
  for (let command = 1; command <= stormyCommands + calmCommands; command += 1) {
    weather(play, command, chooseListFaults)
    sandbox.control.setDrift({
      drift: Object.fromEntries(lists.map((list) => [list, { perRequest: amounts(), lateBySeconds }])),
    })
    const mode = command > stormyCommands || random.happens(0.5) ? 'full' : 'incremental'
    const maxPages = command <= stormyCommands && random.happens(0.1) ? 3 : undefined
    const parallel = random.pick([1, 4])
    const shape = { mode, lookbackSeconds: lateBySeconds, maxPages, parallel } as const
    const input: ExportInput = { resources: [...lists], to: ['csv'], ...shape }
    const report = await unlessEnded(world, () =>
      world.play('exportData', `export-${random.below(2)}`, input),
    )
    tally.add('commands')
    await world.settle()
    const isRestored = world.log.some((line) => /^(run files|everything).* restored/.test(line))
    const findings = await judge.judge({ dataDir: world.worker().dataDir, report, isRestored })
    if (findings.length > 0) return findings
    if (report !== undefined) tally.add(`export ${mode} ${report.verdict}`)
    if (command > stormyCommands && report?.verdict === 'proven') return []
  }
  return [`is not proven after ${calmCommands} commands in which nothing went wrong`]
}
