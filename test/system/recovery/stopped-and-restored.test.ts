import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connectTemporal, createWorld, openTestWorker, startTestWorker, until } from '../export/world.ts'
import { kill, startWorkerProcess } from '../worker/worker-process.ts'
import { callCommand } from '../command-line/call-command.ts'
import { breakSome, idsOf, quick, resume, resumesAsked, startRecovery, statusOf, well } from './world.ts'

test(
  'a recovery that is stopped after its data folder was restored finds the subscriptions that it had resumed',
  { tags: ['long'] },
  async () => {
    // Longer than the heartbeat that the test waits for may take: after it, a sender would go on to the next two.
    const latency = { kind: 'latency', ms: 20_000, where: 'after', on: resume } as const
    const world = await createWorld({ ...well, faults: [latency] })
    breakSome(world, { ids: idsOf(world).slice(0, 6), reason: 'gateway_issue' })
    const env = { BILLING_SETTLE_SECONDS: '0.5' }
    const client = await connectTemporal()
    const before = await openTestWorker(world, env)
    const input = { ...quick, approval: true, canary: 0, concurrency: 2, verifyAfter: '100ms' }
    const run = await startRecovery({ client, world, input })
    await until(async () => (await statusOf(run)).waitingFor !== undefined)
    await before.stop()
    const backup = `${world.dataDir}-backup`
    cpSync(world.dataDir, backup, { recursive: true })
    const worker = await startWorkerProcess(world, env)
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'the gateway works again' }] })
    await until(async () => {
      const { raw, status } = await run.describe()
      expect(status.name).toBe('RUNNING')
      const [sending] = raw.pendingActivities ?? []
      const data = sending?.heartbeatDetails?.payloads?.[0]?.data
      return data !== undefined && data !== null && /"claims":[2-9]/.test(Buffer.from(data).toString())
    })
    await kill(worker)
    expect(resumesAsked(world)).toHaveLength(2)
    rmSync(world.dataDir, { recursive: true })
    cpSync(backup, world.dataDir, { recursive: true })
    rmSync(join(world.dataDir, 'worker.lock'), { force: true })
    await run.signal('stop')
    // However soon the killed step is tried again, it resumes nothing before it hears of the stop.
    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 429, on: resume }] })
    await callCommand(world, ['state', 'repair'])
    await startTestWorker(world, env)
    // Which of the six were resumed, only the service knows: the others may have been tried without effect.
    expect(await run.result()).toMatchObject({
      ended: { how: 'stopped' },
      counts: { done: 2, parked: 4, notTried: 0, unknown: 0 },
    })
  },
)
