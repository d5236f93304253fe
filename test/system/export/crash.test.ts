import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { input, killGroup, pagesRead, quiet, says, startConnector } from './killed-process.ts'
import { connectTemporal, createWorld, folderOf, startRun } from './world.ts'

describe('an export whose processes are killed', () => {
  test(
    'is proven after a SIGKILL of the Temporal server, whose database is on disk',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ ...quiet, faults: [{ kind: 'latency', ms: 40 }] })
      const binary = () => Promise.resolve(world.env.TEMPORAL_CLI_PATH)
      const first = await startDevServer({ dataDir: world.dataDir, binary, ui: false })
      const grpc = Number(first.address.split(':')[1])
      const worker = startConnector(world, ['worker'], { TEMPORAL_ADDRESS: first.address })
      await says(worker, 'listening')
      const client = await connectTemporal(first)
      const run = await startRun({ client, world, input })
      await pagesRead(world, 10)
      process.kill(first.pid, 'SIGKILL')
      await first.stop()
      const second = await startDevServer({
        dataDir: world.dataDir,
        binary,
        ui: false,
        choosePorts: () => Promise.resolve({ grpc, ui: grpc + 1 }),
      })
      onTestFinished(() => second.stop())
      const report = await run.result()
      expect(report.verdict).toBe('proven')
      expect(await verifyExport(folderOf(report, 'customers'))).toMatchObject({ problems: [] })
    },
  )

  test(
    'resumes under the same command after a SIGKILL of everything under --local',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ ...quiet, faults: [{ kind: 'latency', ms: 1000 }] })
      const words = ['export', 'customers', '--local', '--json']
      const local = { TEMPORAL_ADDRESS: '' }
      const first = startConnector(world, words, local)
      await pagesRead(world, 45)
      killGroup(first)
      await once(first, 'exit')
      const asked = world.sandbox.control.counters().requests
      const second = startConnector(world, words, local)
      second.stderr?.resume()
      let out = ''
      second.stdout?.on('data', (data) => (out += String(data)))
      const [code] = await once(second, 'close')
      expect(code).toBe(0)
      const { exports } = JSON.parse(out) as { exports: { verdict: string; records: number }[] }
      expect(exports).toMatchObject([{ verdict: 'proven', records: 6000 }])
      // It went on where the first was, at most 5 s behind, instead of from the start.
      expect(world.sandbox.control.counters().requests - asked).toBeLessThan(60)
    },
  )
})
