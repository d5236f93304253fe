import { spawn, type ChildProcess } from 'node:child_process'
import { once as onceEvent } from 'node:events'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Chance } from '../../../sandbox/data/random.ts'
import type { Fault } from '../../../sandbox/faults.ts'
import {
  connectTemporal,
  createWorld,
  local,
  openTestWorker,
  startCommand,
  until,
  type World,
} from '../export/world.ts'
import { addonsCsv, once, putFile, retentionsCsv, sheetOf, startImport, timesOf } from './world.ts'

const seed = 20_261_121
const counts = { customers: 1, subscriptions: 0, plans: 3, retentions: 20, orders: 0 }
const connector = fileURLToPath(new URL('../../../scripts/connector.ts', import.meta.url))

/** `IMPORT_ROWS=10000 IMPORT_KILLS=30 vitest run --project system test/system/import/crash` takes some ten minutes. */
const chaos = {
  rows: Number(process.env['IMPORT_ROWS'] ?? 200),
  kills: Number(process.env['IMPORT_KILLS'] ?? 2),
  timeoutMs: 120_000 + 30_000 * Number(process.env['IMPORT_KILLS'] ?? 0),
}

/** A worker in a process of its own, until it is killed. */
async function startWorkerProcess(world: World): Promise<ChildProcess> {
  const child = spawn(process.execPath, [connector, 'worker'], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...world.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let heard = ''
  child.stderr?.on('data', (data) => (heard += String(data)))
  await until(() => heard.includes('listening') || child.exitCode !== null)
  expect(heard).toContain('listening')
  return child
}

async function kill(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL') {
  const exited = onceEvent(child, 'exit')
  child.kill(signal)
  await exited
}

const writes = (world: World) =>
  world.sandbox.control.requests().filter(({ method }) => method === 'POST').length

const faultsOn = (on: string): Fault[] => [
  { kind: 'latency', ms: 30, jitterMs: 40 },
  { kind: 'latency', ms: 2, jitterMs: 20, where: 'after', on },
  { kind: 'reset', effect: 'done', rate: 0.03, on },
  { kind: 'reset', effect: 'none', rate: 0.02, on },
]

/** Kills the worker whenever so many more requests have come, and starts the next one. */
async function importUnderKills(options: {
  kind: 'retentions' | 'addons'
  rows: string
  kills: number
  most: number
}) {
  const { kind, rows, kills, most } = options
  const chance = new Chance(seed, kills)
  const world = await createWorld({ seed, counts, faults: faultsOn(`POST /${kind}/`) })
  let worker = await startWorkerProcess(world)
  const client = await connectTemporal()
  const input = { kind, file: await putFile(world, rows), verifyAfter: 0.3, maxFailureShare: 1, canary: 0 }
  const run = await startImport({ client, world, input })
  for (let killed = 0; killed < kills; killed += 1) {
    const enough = writes(world) + 1 + chance.below(most)
    await until(() => writes(world) >= enough)
    await kill(worker)
    worker = await startWorkerProcess(world)
  }
  return { world, run, worker, result: await run.result() }
}

describe(`an import whose worker is killed at random moments (seed ${seed})`, () => {
  test(
    `makes each of ${chaos.rows} retentions exactly once, and proves it`,
    { timeout: chaos.timeoutMs },
    async () => {
      const { rows, kills } = chaos
      const most = Math.ceil((1.5 * rows) / (kills + 1)) - 10
      const { world, result, run } = await importUnderKills({
        kind: 'retentions',
        rows: retentionsCsv(rows),
        kills,
        most,
      })
      const { events } = await run.fetchHistory()
      console.log(chaos, { counts: result.counts, outcomes: result.outcomes, events: events?.length })
      expect(timesOf(world, 'retentions', rows).filter((times) => times !== 1)).toEqual([])
      expect(result).toMatchObject({ verdict: 'proven', counts: { done: rows } })
      expect(events?.length).toBeLessThan(120)
      // Sending goes before reading where workers have more to do than they can do at once.
      const sending = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: step }) =>
        step?.activityType?.name === 'sendImport' ? [step.priority?.priorityKey] : [],
      )
      expect(new Set(sending)).toEqual(new Set([1]))
    },
  )

  test('makes no addon twice, and names those in doubt', { timeout: 90_000 }, async () => {
    const { world, result } = await importUnderKills({
      kind: 'addons',
      rows: addonsCsv(120),
      kills: 2,
      most: 25,
    })
    const times = timesOf(world, 'addons', 120)
    expect(times.filter((count) => count > 1)).toEqual([])
    const rows = await sheetOf(result, 'results')
    expect(rows.filter((row, at) => row['_status'] === 'done' && times[at] !== 1)).toEqual([])
    expect(result.counts.done + result.counts.parked).toBe(120)
    expect(result.counts.parked).toBeGreaterThan(0)
  })
})

describe('an import whose worker ends', () => {
  test('by SIGTERM awaits its requests, so that no row is in doubt', { timeout: 60_000 }, async () => {
    const world = await createWorld({
      counts,
      faults: [{ kind: 'latency', ms: 150, where: 'after', on: 'POST /addons/' }],
    })
    const worker = await startWorkerProcess(world)
    const client = await connectTemporal()
    const file = await putFile(world, addonsCsv(80))
    const run = await startImport({ client, world, input: { kind: 'addons', file, canary: 0 } })
    await until(() => writes(world) > 15)
    await kill(worker, 'SIGTERM')
    await startWorkerProcess(world)
    expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 80, parked: 0 } })
    expect(timesOf(world, 'addons', 80)).toEqual(once(80))
  })

  test('tells how far it came, from the ledger, while nobody works on it', { timeout: 60_000 }, async () => {
    const world = await createWorld({ counts, faults: [{ kind: 'latency', ms: 80 }] })
    const worker = await startWorkerProcess(world)
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(600))
    const input = { kind: 'retentions', file, canary: 0, verifyAfter: 0.2 } as const
    const run = await startImport({ client, world, input })
    await until(() => writes(world) > 20)
    await kill(worker)
    const { code, stdout } = await startCommand(world, ['report', run.workflowId, '--json']).ended
    expect(code).toBe(3)
    const report = JSON.parse(stdout) as { counts: Record<string, number>; verdict: string; ended?: unknown }
    expect(report.verdict).toBe('unproven')
    expect(report.ended).toBeUndefined()
    expect(report.counts['done']).toBeGreaterThan(10)
    expect(report.counts['unknown']).toBeGreaterThan(0)
    // Told to stop while nobody listens: it ends as soon as somebody does, with what it knows. The sender of the new
    // worker may be at work before the run is: at 50 rows a second it hears of the stop long before the last row.
    await run.signal('stop')
    await startWorkerProcess(world)
    const stopped = await run.result()
    expect(stopped).toMatchObject({ ended: { how: 'stopped' } })
    expect(stopped.counts.staged).toBeGreaterThan(0)
  })
})

test(
  'a ledger that was restored from a backup doubles nothing that was sent since',
  { timeout: 60_000 },
  async () => {
    const world = await createWorld({ counts })
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(250))
    const input = { kind: 'retentions', file, verifyAfter: 0.1, requestsPerSecond: 20, canary: 0 } as const
    const state = join(world.dataDir, 'state.db')
    let worker = await openTestWorker(world)
    const run = await startImport({ client, world, input })
    const pauseAt = async (count: number) => {
      await until(() => writes(world) >= count)
      await run.signal('pause')
      // The segment has told the run how often it claimed when it has ended.
      await until(async () => (await run.describe()).raw.pendingActivities?.length === 0)
      await worker.stop()
    }
    await pauseAt(20)
    await copyFile(state, `${state}.backup`)
    worker = await openTestWorker(world)
    await run.signal('unpause')
    await pauseAt(writes(world) + 10)
    const sent = writes(world)
    await copyFile(`${state}.backup`, state)
    worker = await openTestWorker(world)
    onTestFinished(() => worker.stop())
    await run.executeUpdate('setLimits', { args: [{ requestsPerSecond: 400 }] })
    await run.signal('unpause')
    const result = await run.result()
    expect(sent).toBeLessThan(240)
    expect(timesOf(world, 'retentions', 250)).toEqual(once(250))
    expect(result).toMatchObject({ verdict: 'proven', counts: { done: 250 } })
    expect(result.outcomes['found']).toBeGreaterThan(9)
  },
)

describe('import --local that was killed with all it started', () => {
  test(
    'is not woken by export --local, and the same command makes each row once',
    { timeout: 120_000 },
    async () => {
      const world = await createWorld({ counts, faults: [{ kind: 'latency', ms: 60 }] })
      const file = join(world.dataDir, 'mine.csv')
      await writeFile(file, retentionsCsv(120))
      const words = ['import', 'retentions', file, '--local', '--json', '--canary', '0']
      const env = { ...local, BILLING_SETTLE_SECONDS: '0.3' }
      const first = startCommand(world, words, { detached: true, env })
      await until(() => writes(world) > 20 || first.child.exitCode !== null)
      process.kill(-(first.child.pid ?? 0), 'SIGKILL')
      await first.ended
      await sleep(300)
      const before = writes(world)

      // So slow that what the killed command had begun would be tried again meanwhile, if it were woken.
      world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 2_000, on: 'GET /plans/' }] })
      const exported = await startCommand(world, ['export', 'plans', '--local', '--json'], { env }).ended
      expect(exported.code).toBe(0)
      expect(exported.stderr).toMatch(/The unfinished run import-retentions-mine-\w+ does not resume here/)
      expect(writes(world)).toBe(before)

      world.sandbox.control.setFaults({ faults: [] })
      const second = await startCommand(world, words, { env }).ended
      expect(second.stderr).toContain('Resumes the unfinished run')
      expect({ code: second.code, stderr: second.code === 0 ? '' : second.stderr }).toEqual({
        code: 0,
        stderr: '',
      })
      expect(JSON.parse(second.stdout)).toMatchObject({ verdict: 'proven', counts: { done: 120 } })
      expect(timesOf(world, 'retentions', 120)).toEqual(once(120))

      // No field of any row, and no token, in what Temporal keeps.
      const names = ['temporal.db', 'temporal.db-wal']
      const texts = await Promise.all(
        names.map((name) => readFile(join(world.dataDir, name), 'latin1').catch(() => '')),
      )
      const kept = texts.join('')
      expect(kept).toContain('import-retentions-mine')
      const secrets = ['Honorarios', '1500.10', '117.50', 'sup_3', world.sandbox.token]
      expect(secrets.filter((secret) => kept.includes(secret))).toEqual([])
    },
  )
})
