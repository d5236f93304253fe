import { once } from 'node:events'
import { expect, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { Chance } from '../../../sandbox/data/random.ts'
import { input, killGroup, pagesRead, quiet, says, startConnector } from './killed-process.ts'
import { connectTemporal, createWorld, filesOf, folderOf, startRun, startTestWorker } from './world.ts'

const seed = 20261121

/** Each costs what Temporal waits for a silent worker. */
const kills = Number(process.env['KILLS'] ?? 3)

test(
  'an export is proven and equal to the byte after SIGKILLs of the worker at random moments',
  { timeout: 120_000 + 10_000 * kills, tags: ['soak'] },
  async () => {
    console.log({ seed, kills })
    const chance = new Chance(seed, 1)
    const world = await createWorld({ ...quiet, counts: { customers: 10_000 * (kills + 1) } })
    const client = await connectTemporal()
    const startWorker = async () => {
      const worker = startConnector(world, ['worker'])
      await says(worker, 'listening')
      return worker
    }
    let worker = await startWorker()
    const undisturbed = await (await startRun({ client, world, input })).result()

    // Some ten pages a second: most kills come after a checkpoint, which is made every 5 s.
    world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 300 }] })
    const run = await startRun({ client, world, input })
    for (let killed = 1; killed <= kills; killed += 1) {
      await pagesRead(world, 60 + chance.below(40))
      killGroup(worker)
      await once(worker, 'exit')
      if (killed < kills) worker = await startWorker()
    }
    await startTestWorker(world)
    world.sandbox.control.setFaults({ faults: [] })
    const report = await run.result()
    expect(report.verdict).toBe('proven')
    const folder = folderOf(report, 'customers')
    expect(await verifyExport(folder)).toMatchObject({ problems: [] })
    expect(await filesOf(folder)).toEqual(await filesOf(folderOf(undisturbed, 'customers')))
  },
)
