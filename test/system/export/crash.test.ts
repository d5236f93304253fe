import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/csv/verify-export.ts'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { Chance } from '../../../sandbox/data/random.ts'
import { input, killGroup, pagesRead, quiet, says, startConnector } from './killed-process.ts'
import { connectTemporal, createWorld, filesOf, folderOf, startRun } from './world.ts'

const seed = 20261121

/** Each costs what Temporal waits for a silent worker; `EXPORT_KILLS=20 vitest run test/export/crash` takes some minutes. */
const kills = Number(process.env['EXPORT_KILLS'] ?? 3)

describe('an export whose processes are killed', () => {
  const timeout = 120_000 + 10_000 * Number(process.env['EXPORT_KILLS'] ?? 0)
  test(
    'is proven and equal to the byte, after SIGKILLs of the worker at random moments',
    { timeout },
    async () => {
      console.log({ seed, kills })
      const chance = new Chance(seed, 1)
      const world = await createWorld({ ...quiet, counts: { customers: 3_000 * kills } })
      const client = await connectTemporal()
      let worker = startConnector(world, ['worker'])
      await says(worker, 'listening')
      const undisturbed = await (await startRun({ client, world, input })).result()

      // Twenty pages a second: most kills come after a checkpoint, which is made every second.
      world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 200 }] })
      const run = await startRun({ client, world, input })
      for (let kill = 0; kill < kills; kill += 1) {
        await pagesRead(world, 15 + chance.below(20))
        killGroup(worker)
        await once(worker, 'exit')
        worker = startConnector(world, ['worker'])
        await says(worker, 'listening')
      }
      world.sandbox.control.setFaults({ faults: [] })
      const report = await run.result()
      expect(report.verdict).toBe('proven')
      const folder = folderOf(report, 'customers')
      expect(await verifyExport(folder)).toMatchObject({ problems: [] })
      expect(await filesOf(folder)).toEqual(await filesOf(folderOf(undisturbed, 'customers')))
    },
  )

  test('is proven after a SIGKILL of the Temporal server, whose database is on disk', async () => {
    const world = await createWorld({ ...quiet, faults: [{ kind: 'latency', ms: 40 }] })
    const binary = () => Promise.resolve(world.env.TEMPORAL_CLI_PATH)
    const first = await startDevServer({ dataDir: world.dataDir, binary, ui: false })
    const grpc = Number(first.address.split(':')[1])
    const worker = startConnector(world, ['worker'], { TEMPORAL_ADDRESS: first.address })
    await says(worker, 'listening')
    const client = await connectTemporal(first.address)
    const run = await startRun({ client, world, input })
    await pagesRead(world, 10)
    process.kill(first.pid, 'SIGKILL')
    await first.stop()
    const second = await startDevServer({
      dataDir: world.dataDir,
      binary,
      ui: false,
      ports: { grpc, ui: grpc + 1 },
    })
    onTestFinished(() => second.stop())
    const report = await run.result()
    expect(report.verdict).toBe('proven')
    expect(await verifyExport(folderOf(report, 'customers'))).toMatchObject({ problems: [] })
  })

  test('resumes under the same command after a SIGKILL of everything under --local', async () => {
    const world = await createWorld({ ...quiet, faults: [{ kind: 'latency', ms: 200 }] })
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
    // It went on where the first was, at most a second behind, instead of from the start.
    expect(world.sandbox.control.counters().requests - asked).toBeLessThan(60)
  })
})
