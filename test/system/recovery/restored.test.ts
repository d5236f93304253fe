import { copyFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, openTestWorker, until } from '../export/world.ts'
import { breakSome, idsOf, quick, resumesDone, startRecovery, statusOf, well } from './world.ts'

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
