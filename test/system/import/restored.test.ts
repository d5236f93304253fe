import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connectTemporal, createWorld, openTestWorker, until, type World } from '../export/world.ts'
import { callCommand } from '../command-line/call-command.ts'
import { addonsCsv, once, putFile, quick, retentionsCsv, startImport, timesOf } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 20, orders: 0 }
const rows = 60

/** Copies the ledger as it is now; what is given back puts it where it was. */
function backUp({ dataDir }: World): () => void {
  const backup = join(dataDir, 'backup.db')
  const db = new DatabaseSync(join(dataDir, 'state.db'))
  db.exec(`vacuum into '${backup}'`)
  db.close()
  return () => {
    for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, `state.db${end}`), { force: true })
    copyFileSync(backup, join(dataDir, 'state.db'))
  }
}

type Handle = Awaited<ReturnType<typeof startImport>>

const waitsFor = (run: Pick<Handle, 'query'>, question: string) =>
  until(
    async () =>
      (await run.query<{ waitingFor?: { question: string } }>('status')).waitingFor?.question === question,
  )

/** A worker that the test replaces while the data folder is changed. */
async function openWorker(world: World, more: Record<string, string> = {}) {
  let worker = await openTestWorker(world, more)
  onTestFinished(() => worker.stop())
  const start = async () => {
    worker = await openTestWorker(world, more)
  }
  return {
    start,
    stop: () => worker.stop(),
    async replace(change: () => void) {
      await worker.stop()
      change()
      await start()
    },
  }
}

test.each(['retentions', 'addons'] as const)(
  'an import of %s whose ledger was put back from before it began is finished once it is repaired, and sends no row twice',
  async (kind) => {
    const world = await createWorld({ counts })
    const worker = await openWorker(world)
    const client = await connectTemporal()
    const putBack = backUp(world)
    const file = await putFile(world, kind === 'addons' ? addonsCsv(rows) : retentionsCsv(rows))
    const input = { kind, file, ...quick, confirmCanary: true, canary: 5 }
    const run = await startImport({ client, world, input })
    await waitsFor(run, 'canary')
    await worker.stop()
    putBack()
    await expect(openTestWorker(world)).rejects.toThrow('it lacks 5 of 5 claims')
    expect((await callCommand(world, ['state', 'repair'])).stdout).toContain(`${rows} rows staged again`)
    await worker.start()
    await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'the canary is right' }] })
    const result = await run.result()
    const times = timesOf(world, kind, rows)
    if (kind === 'retentions') expect(times).toEqual(once(rows))
    expect(times.filter((time) => time > 1)).toEqual([])
    expect(result).toMatchObject(
      kind === 'retentions'
        ? { verdict: 'proven', counts: { done: rows } }
        : { verdict: 'unproven', counts: { done: 0, parked: rows }, outcomes: { cannotLookUp: rows } },
    )
  },
)

test('rows of a stopped import that were sent after the backup are not taken over by another file', async () => {
  const world = await createWorld({ counts })
  const worker = await openWorker(world)
  const client = await connectTemporal()
  const file = await putFile(world, addonsCsv(30))
  const input = { kind: 'addons', ...quick, canary: 5, confirmCanary: true, approval: true } as const
  const first = await startImport({ client, world, input: { ...input, file } })
  await waitsFor(first, 'approval')
  const putBack = backUp(world)
  await first.executeUpdate('approve', { args: [{ by: 'Ana', why: 'ok' }] })
  await waitsFor(first, 'canary')
  await first.signal('stop')
  await first.result()
  await worker.stop()
  putBack()
  await callCommand(world, ['state', 'repair'])
  await worker.start()
  const longer = await putFile(world, addonsCsv(31), 'longer.csv')
  const second = await startImport({ client, world, input: { kind: 'addons', ...quick, file: longer } })
  await expect(second.result()).rejects.toMatchObject({
    cause: {
      message: expect.stringContaining(`30 of 31 rows belong to the run ${first.workflowId}`) as string,
    },
  })
  expect(timesOf(world, 'addons', 31).filter((times) => times > 1)).toEqual([])
})

test('an import that had ended before its ledger was put back is proven again by the same command, as the repair says', async () => {
  const world = await createWorld({ counts })
  const worker = await openWorker(world, { BILLING_SETTLE_SECONDS: '0.1' })
  const putBack = backUp(world)
  const file = join(world.dataDir, 'rows.csv')
  writeFileSync(file, retentionsCsv(30))
  const importAgain = () => callCommand(world, ['import', 'retentions', file, '--yes'])
  expect((await importAgain()).stdout).toContain('30 of 30 retentions done; proven by audit')
  await worker.stop()
  putBack()
  const { stdout } = await callCommand(world, ['state', 'repair'])
  expect(stdout).toMatch(
    /: 30 rows staged again as unknown, 0 more unknown\nNext: .*: npx connector import retentions /,
  )
  await worker.start()
  const { stdout: report, code } = await importAgain()
  expect(report).toContain('30 of 30 retentions done; proven by audit')
  expect(code).toBe(0)
  expect(timesOf(world, 'retentions', 30)).toEqual(once(30))
})
