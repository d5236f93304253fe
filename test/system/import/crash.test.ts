import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, local, startCommand, startTestWorker, until } from '../export/world.ts'
import { kill, startWorkerProcess } from '../worker/worker-process.ts'
import { once, posts, putFile, retentionsCsv, startImport, timesOf } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 3, retentions: 20, orders: 0 }

describe('an import whose worker ends', () => {
  test('tells how far it came, from the ledger, while nobody works on it', { tags: ['long'] }, async () => {
    const world = await createWorld({ counts, faults: [{ kind: 'latency', ms: 80 }] })
    const worker = await startWorkerProcess(world)
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(600))
    const input = { kind: 'retentions', file, canary: 0, verifyAfter: 0.2 } as const
    const run = await startImport({ client, world, input })
    await until(() => posts(world) > 20)
    await kill(worker)
    const { code, stdout } = await callCommand(world, ['run', 'report', run.workflowId, '--json'])
    expect(code).toBe(3)
    const report = JSON.parse(stdout) as { counts: Record<string, number>; verdict: string; ended?: unknown }
    expect(report.verdict).toBe('unproven')
    expect(report.ended).toBeUndefined()
    expect(report.counts['done']).toBeGreaterThan(10)
    expect(report.counts['unknown']).toBeGreaterThan(0)
    // Told to stop while nobody listens: it ends as soon as somebody does, with what it knows. The sender of the new
    // worker may be at work before the run is: at 50 rows a second it hears of the stop long before the last row.
    await run.signal('stop')
    await startTestWorker(world)
    const stopped = await run.result()
    expect(stopped).toMatchObject({ ended: { how: 'stopped' } })
    expect(stopped.counts.staged).toBeGreaterThan(0)
  })
})

describe('import --local that was killed with all it started', () => {
  test(
    'is not woken by export --local, and the same command makes each row once',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts, faults: [{ kind: 'latency', ms: 60 }] })
      const file = join(world.dataDir, 'mine.csv')
      await writeFile(file, retentionsCsv(120))
      const words = ['import', 'retentions', file, '--local', '--json', '--input', 'canary=0']
      const env = { ...local, BILLING_SETTLE_SECONDS: '0.3' }
      const first = startCommand(world, words, { detached: true, env })
      await until(() => posts(world) > 20 || first.child.exitCode !== null)
      process.kill(-(first.child.pid ?? 0), 'SIGKILL')
      await first.ended
      // What had left is still done.
      await until(() => world.sandbox.control.counters().waiting === 0)
      const before = posts(world)

      // So slow that what the killed command had begun would be tried again meanwhile, if it were woken.
      world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 2_000, on: 'GET /plans/' }] })
      const exported = await startCommand(world, ['export', 'plans', '--local', '--json'], { env }).ended
      expect(exported.code).toBe(0)
      expect(exported.stderr).toMatch(/The unfinished run import-retentions-mine-\w+ does not resume here/)
      expect(posts(world)).toBe(before)

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
