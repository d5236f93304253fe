import { expect, test } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import { Random } from '../../chaos/random.ts'
import { asked, connectTemporal, createWorld, startRun, until } from '../../system/export/world.ts'
import { createFleet } from './fleet-world.ts'

const { startMember, openStore, expectEachOnce } = createFleet()

// The short form; the long one is `FLEET_KILLS=30 FLEET_SEED=1`.
const kills = Number(process.env['FLEET_KILLS'] ?? 1)
const seed = Number(process.env['FLEET_SEED'] ?? 20261122)

test(`workers killed at random and replaced by others with empty folders lose no record and publish none twice (seed ${seed})`, async () => {
  const random = new Random(seed)
  const counts = { customers: 5000 * (kills + 1), subscriptions: 1000 }
  const slow = { faults: [{ kind: 'latency', ms: 2000 }] } as const
  const world = await createWorld({ counts, ...slow })
  const members = await Promise.all([startMember(world), startMember(world)])
  const client = await connectTemporal()
  const input: ExportInput = { resources: ['customers', 'subscriptions'], to: ['csv', 'parquet'] }
  const run = await startRun({ client, world, input })
  for (let kill = 0; kill < kills; kill += 1) {
    const from = asked(world)
    await until(() => asked(world) > from + 10 + random.below(10))
    const index = random.below(members.length)
    await members[index]!.lose()
    members[index] = await startMember(world)
  }
  expect(await openStore(world).list('exports/reports'), 'the run went on all the while').toEqual([])
  world.sandbox.control.setFaults({ faults: [] })
  const report = await run.result()
  expect(report.verdict).toBe('proven')
  for (const [resource, count] of Object.entries(counts)) await expectEachOnce(world, report, resource, count)
}, 3_600_000)
