import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isPublished } from '../../../core/exports/report.ts'
import { hasPython, judgeStoredByPython } from '../../system/export/python-checker.ts'
import { asked, connectTemporal, createWorld, startRun, until } from '../../system/export/world.ts'
import { createFleet } from './fleet-world.ts'

const { startMember, startMachine, openStore, expectEachOnce } = createFleet()

test('an export of a list in ranges is proven although the machine that began it is lost with its disk', async () => {
  const count = 6000
  // Checkpoints are written every 5 s; after the first ones, the service is too slow for the export to end.
  const faults = [
    { kind: 'latency', ms: 2000 },
    { kind: 'latency', ms: 20_000, from: 60 },
  ] as const
  const world = await createWorld({ counts: { customers: count }, faults })
  const { control } = world.sandbox
  const first = await startMachine(world)
  const client = await connectTemporal()
  const run = await startRun({ client, world, input: { resources: ['customers'] } })
  const store = openStore(world)
  const checkpoints = async () =>
    (await store.list('parts')).filter(({ path }) => path.endsWith('.checkpoint.json')).length
  await until(async () => (await checkpoints()) >= 4)
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
