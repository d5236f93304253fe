import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isPublished } from '../../../core/exports/report.ts'
import { hasPython, judgeStoredByPython } from '../../system/export/python-checker.ts'
import { asked, connectTemporal, createWorld, startRun, until } from '../../system/export/world.ts'
import { createFleet } from './fleet-world.ts'

const { startMember, openStore, expectEachOnce } = createFleet()

test.each([
  ['a list', { parallel: 1 }, { ms: 300, halt: 30, kept: 1 }],
  ['a list in ranges', {}, { ms: 2000, halt: 60, kept: 4 }],
])(
  'an export of %s is proven although the machine that began it is lost with its disk',
  async (_what, how, { ms, halt, kept }) => {
    const count = 6000
    // Checkpoints are written every 5 s; after the first ones, the service is too slow for the export to end.
    const faults = [
      { kind: 'latency', ms },
      { kind: 'latency', ms: 20_000, from: halt },
    ] as const
    const world = await createWorld({ counts: { customers: count }, faults })
    const { control } = world.sandbox
    const first = await startMember(world)
    const client = await connectTemporal()
    const run = await startRun({ client, world, input: { resources: ['customers'], ...how } })
    const store = openStore(world)
    const checkpoints = async () =>
      (await store.list('parts')).filter(({ path }) => path.endsWith('.checkpoint.json')).length
    await until(async () => (await checkpoints()) >= kept)
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
  },
)
