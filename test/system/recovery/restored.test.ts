import { copyFileSync, cpSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, openTestWorker, until } from '../export/world.ts'
import {
  breakSome,
  idsOf,
  quick,
  resume,
  resumesAsked,
  resumesDone,
  startRecovery,
  statusOf,
  well,
} from './world.ts'

test('a recovery whose ledger was put back from before its snapshot resumes each subscription once, after a repair', async () => {
  const world = await createWorld({ ...well })
  const client = await connectTemporal()
  const env = { BILLING_SETTLE_SECONDS: '0.3' }
  let worker = await openTestWorker(world, env)
  onTestFinished(() => worker.stop())
  const backup = join(world.dataDir, 'backup.db')
  const db = new DatabaseSync(join(world.dataDir, 'state.db'))
  db.exec(`vacuum into '${backup}'`)
  db.close()
  const ids = breakSome(world, { ids: idsOf(world).slice(0, 20), reason: 'gateway_issue' })
  const run = await startRecovery({ client, world, input: { ...quick, attempts: 2, approval: true } })
  await until(async () => (await statusOf(run)).waitingFor !== undefined)
  await worker.stop()
  for (const end of ['', '-wal', '-shm']) rmSync(join(world.dataDir, `state.db${end}`), { force: true })
  copyFileSync(backup, join(world.dataDir, 'state.db'))
  await callCommand(world, ['state', 'repair'])
  worker = await openTestWorker(world, env)
  await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'the gateway works again' }] })
  expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 20 } })
  expect(resumesDone(world).toSorted()).toEqual(ids.toSorted())
})

test(
  'a recovery whose ledger was put back together with its mark resumes nothing more than its attempts, because Temporal knows of those before',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ ...well, faults: [{ kind: 'fallBack', on: resume }] })
    breakSome(world, { ids: idsOf(world).slice(0, 1), reason: 'gateway_issue' })
    const client = await connectTemporal()
    const env = { BILLING_SETTLE_SECONDS: '0.1' }
    let worker = await openTestWorker(world, env)
    onTestFinished(() => worker.stop())
    const input = { ...quick, approval: true, attempts: 3, canary: 0, firstWait: '4s' } as const
    const run = await startRecovery({ client, world, input })
    await until(async () => (await statusOf(run)).waitingFor !== undefined)
    await worker.stop()
    const backup = `${world.dataDir}-backup`
    cpSync(world.dataDir, backup, { recursive: true })
    worker = await openTestWorker(world, env)
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'the gateway works again' }] })
    const pending = async () => (await run.describe()).raw.pendingActivities?.[0]
    await until(async () => {
      const data = (await pending())?.heartbeatDetails?.payloads?.[0]?.data
      return /"claims":2/.test(Buffer.from(data ?? []).toString())
    })
    await worker.stop()
    expect(resumesAsked(world)).toHaveLength(2)
    rmSync(world.dataDir, { recursive: true })
    cpSync(backup, world.dataDir, { recursive: true })
    for (let times = 1; times <= 2; times += 1) await callCommand(world, ['state', 'repair'])
    worker = await openTestWorker(world, env)
    expect(await run.result()).toMatchObject({ outcomes: { attemptsUsedUp: 1 } })
    expect(resumesAsked(world)).toHaveLength(3)
  },
)
