import { once } from 'node:events'
import { expect, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { Chance } from '../../../sandbox/data/random.ts'
import {
  asked,
  connectTemporal,
  createWorld,
  folderOf,
  startCommand,
  until,
  type World,
} from '../export/world.ts'
import { idsOf, rowsIn, startFetch } from './world.ts'

const seed = 20261122

/** A worker in a process of its own, listening. */
async function startWorkerProcess(world: World) {
  const worker = startCommand(world, ['worker'])
  await worker.says('listening')
  return worker.child
}

test(
  'a fetch resumes from its checkpoint, with each document once, after SIGKILLs of the worker',
  { tags: ['long'] },
  async () => {
    console.log(`seed ${seed}`)
    const chance = new Chance(seed, 1)
    const world = await createWorld({
      counts: { customers: 1, creditnotes: 600 },
      faults: [{ kind: 'latency', ms: 160 }],
    })
    const client = await connectTemporal()
    const there = idsOf(world, 'creditnotes')
    // Every tenth id does not exist.
    const ids = there.flatMap((id, at) => (at % 10 === 0 ? [id, `9${id}`] : [id]))
    let worker = await startWorkerProcess(world)
    const run = await startFetch({ client, world, input: { documents: 'creditnotes', ids } })
    let redone = 0
    for (let kill = 0; kill < 2; kill += 1) {
      const from = asked(world)
      // For longer than a checkpoint takes, so that there is one to go on from.
      await until(() => asked(world) > from + 250 + chance.below(50))
      worker.kill('SIGKILL')
      await once(worker, 'exit')
      redone += 1
      worker = await startWorkerProcess(world)
    }
    const report = await run.result()
    expect(report).toMatchObject({ verdict: 'proven', missing: { count: 60 } })
    const folder = folderOf(report, 'creditnotes')
    expect(await verifyExport(folder)).toMatchObject({ problems: [] })
    expect((await rowsIn(folder, 'creditnotes.csv')).map(({ id }) => id)).toEqual(there)
    const missing = (await rowsIn(folder, 'missing.csv')).map(({ id }) => id)
    expect(missing).toEqual(ids.filter((id) => !there.includes(id)))
    // A kill costs what was read since the last checkpoint, 5 s at most: from the start it would be twice that.
    const inFiveSeconds = 4 * (5000 / 160)
    expect(asked(world)).toBeLessThan(ids.length + redone * 1.25 * inFiveSeconds)
  },
)
