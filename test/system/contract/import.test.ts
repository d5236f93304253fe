import { expect, inject, onTestFinished, test } from 'vitest'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { connectTemporal, createWorld, startTestWorker, until } from '../export/world.ts'
import { once, posts, putFile, retentionsCsv, startImport, timesOf } from '../import/world.ts'
import { describeJob, type JobKind, slowFrom } from './job.ts'

const rows = 150
const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 20, orders: 0 }

const imports: JobKind = {
  workflow: 'importFile',
  stopped: { verdict: 'unproven', ended: { how: 'stopped' }, counts: { unknown: 0 } },
  buttons: ['approve', 'pause', 'resolve', 'setLimits', 'stop', 'unpause'],
  async open() {
    const world = await createWorld({ counts, faults: [slowFrom('POST /retentions/')] })
    const file = await putFile(world, retentionsCsv(rows))
    const quick = { verifyAfter: 0.3, maxFailureShare: 1, canary: 0, breakerWaits: [2, 2, 2] }
    const input = { kind: 'retentions', file, ...quick } as const
    return {
      world,
      // The same id is the same run: another one is refused, because these rows are in the ledger.
      start: (client, before) =>
        startImport({ client, world, input, ...(before && { name: before.workflowId }) }),
      work: () => posts(world),
      expectDone(result) {
        expect(result).toMatchObject({ verdict: 'proven', counts: { done: rows } })
        expect(timesOf(world, 'retentions', rows)).toEqual(once(rows))
      },
    }
  },
}

describeJob('an import', imports)

test(
  'a worker outlives a SIGKILL of the Temporal server, whose database is on disk, and its run resumes',
  { tags: ['long'] },
  async () => {
    const job = await imports.open()
    const { dataDir, sandbox } = job.world
    const options = { dataDir, binary: () => Promise.resolve(inject('temporalBinary')) }
    const first = await startDevServer(options)
    const grpc = Number(first.address.split(':')[1])
    const env = { ...job.world.env, TEMPORAL_ADDRESS: first.address }
    const worker = await startTestWorker({ ...job.world, env })
    const run = await job.start(await connectTemporal(first))
    await until(() => job.work() > 12)
    process.kill(first.pid, 'SIGKILL')
    await first.stop()
    const second = await startDevServer({
      ...options,
      choosePorts: () => Promise.resolve({ grpc, ui: Number(new URL(first.uiUrl).port) }),
    })
    onTestFinished(() => second.stop())
    sandbox.control.setFaults({ faults: [] })
    await job.expectDone(await run.result())
    await worker.stop()
  },
)
