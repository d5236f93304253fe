import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { Checkpoint } from '../../../core/exports/parts/checkpoint.ts'
import { isPublished } from '../../../core/exports/report.ts'
import { hasPython, judgeStoredByPython } from '../../system/export/python-checker.ts'
import { asked, connectTemporal, createWorld, startRun, until } from '../../system/export/world.ts'
import { createFleet } from './fleet-world.ts'

const { startMember, startMachine, openStore, expectEachOnce } = createFleet()

test('an export of a list in ranges is proven although the machine that began it is lost with its disk', async () => {
  const count = 6000
  // Checkpoints are written every 5 s; after the first ones, the service is too slow for the export to end.
  const faults = [
    { kind: 'latency', ms: 1000 },
    { kind: 'latency', ms: 20_000, from: 60 },
  ] as const
  const world = await createWorld({ counts: { customers: count }, faults })
  const { control } = world.sandbox
  const first = await startMachine(world)
  const client = await connectTemporal()
  const run = await startRun({ client, world, input: { resources: ['customers'] } })
  const store = openStore(world)
  /** How many customers are in the last checkpoint of each range. */
  const kept = async () => {
    const most = new Map<string, number>()
    for (const { path } of await store.list('parts')) {
      if (!path.endsWith('.checkpoint.json')) continue
      const { parts } = JSON.parse((await store.readText(path))!) as Pick<Checkpoint, 'parts'>
      const rows = parts.reduce((sum, part) => sum + (part.table === 'customers' ? part.rows : 0), 0)
      most.set(dirname(path), Math.max(most.get(dirname(path)) ?? 0, rows))
    }
    return [...most.values()].reduce((sum, rows) => sum + rows, 0)
  }
  await until(async () => (await kept()) > count / 3)
  const second = await startMember(world)
  await first.lose()
  expect(await store.list('exports')).toEqual([])
  control.setFaults({ faults: [] })
  const before = asked(world)
  const report = await run.result()
  expect(report.verdict).toBe('proven')
  expect(asked(world) - before, 'requests after the loss').toBeLessThan(count / 100)
  await expectEachOnce(world, report, 'customers', count)
  if (hasPython)
    expect(await judgeStoredByPython(store, report.exports.filter(isPublished)[0]!.where)).toMatch(
      /^ACCEPT 6000 /,
    )
  const left = await readdir(join(second.folder, 'exports'), { recursive: true })
  expect(left.filter((name) => name.endsWith('.csv'))).toEqual([])
})
