import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { Chance } from '../../../sandbox/data/random.ts'
import { hasPython, judgeByPython } from './python-checker.ts'
import { observeExport } from '../../../scripts/runs/show-run.ts'
import { kill, startWorkerProcess } from '../worker/worker-process.ts'
import {
  asked,
  connectTemporal,
  createWorld,
  filesOf,
  folderOf,
  rowsOf,
  runExport,
  startRun,
  startTestWorker,
  until,
  type World,
} from './world.ts'

/** Short lists are divided as long ones are. */
const divided = { recordsPerRange: 600 }
const input = { resources: ['customers' as const] }
const slow = [{ kind: 'latency', ms: 300, from: 12 }] as const

const rangesOf = async (world: World, run: string) => {
  const names = await readdir(join(world.dataDir, 'parts', run, 'customers', 'ranges'))
  return names.filter((name) => /^\d\d$/.test(name))
}

/** Until the service has been asked for so many pages more. */
async function pagesRead(world: World, pages: number): Promise<void> {
  const enough = asked(world) + pages
  await until(() => asked(world) >= enough)
}

describe('a list that is read in ranges', () => {
  test('shows the progress of all its ranges together, once each', async () => {
    const world = await createWorld({ counts: { customers: 2_700 } })
    // Three ranges of 900 records; no more answers come before two of them can have been read.
    world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 600_000, from: 23 }] })
    const client = await connectTemporal()
    await startTestWorker(world, {}, divided)
    const run = await startRun({ client, world, input: { ...input, parallel: 3 } })
    const observe = observeExport({ handle: run })
    const shown: number[] = []
    await until(async () => {
      const { bars } = await observe()
      shown.push(...bars.map(({ done }) => done))
      return (shown.at(-1) ?? 0) > 1_000
    })
    world.sandbox.control.setFaults({ faults: [] })
    world.sandbox.control.landLateEffects()
    await run.result()
    expect(shown).toEqual(shown.toSorted((one, other) => one - other))
    expect(Math.max(...shown)).toBeLessThanOrEqual(2_700)
  })

  test(
    'gives the bytes of one that is read undivided, also after a pause and a SIGKILL of the worker',
    { tags: ['long'] },
    async () => {
      const seed = 20261122
      console.log({ seed })
      const chance = new Chance(seed, 1)
      const world = await createWorld({ counts: { customers: 9_000 }, tieOrder: 'stable' })
      const { control } = world.sandbox
      const client = await connectTemporal()
      const worker = await startWorkerProcess(world)
      const whole = await runExport(world, { ...input, parallel: 1 })
      const undivided = asked(world)

      control.setFaults({ faults: slow })
      const run = await startRun({ client, world, input: { ...input, parallel: 3 } })
      await pagesRead(world, 14 + chance.below(6))
      await run.signal('pause')
      await run.signal('unpause')
      await pagesRead(world, 8 + chance.below(8))
      await kill(worker)
      await startTestWorker(world)
      control.setFaults({ faults: [] })
      const report = await run.result()
      expect(report).toMatchObject({ verdict: 'proven', exports: [{ records: 9_000 }] })
      expect(await verifyExport(folderOf(report, 'customers'))).toMatchObject({ problems: [] })
      if (hasPython) expect(await judgeByPython(folderOf(report, 'customers'))).toMatch(/^ACCEPT 9000 /)
      expect(await filesOf(folderOf(report, 'customers'))).toEqual(
        await filesOf(folderOf(whole, 'customers')),
      )
      expect(await rangesOf(world, report.run)).toHaveLength(3)
      // Resumed each time, not begun again: what was in flight, and 4 ranges.
      expect(asked(world) - 2 * undivided).toBeLessThan(undivided)
    },
  )

  test(
    'is read page by page if one range breaks, unproven with that reason, and what is no record is rejected once',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({
        counts: { customers: 4_000 },
        faults: [
          { kind: 'shortWindow', drop: 3, from: 20, to: 40, on: 'GET /customers/' },
          { kind: 'wrongType', field: 'id', value: null, records: 20 },
        ],
      })
      await startTestWorker(world, {}, divided)
      const run = await startRun({ client: await connectTemporal(), world, input })
      const report = await run.result()
      expect(report).toMatchObject({
        verdict: 'unproven',
        exports: [
          {
            completeThrough: null,
            reasons: expect.arrayContaining([expect.stringContaining('records seem to be removed')]),
          },
        ],
      })
      const ids = (await rowsOf(report, 'customers')).map(({ id }) => id)
      expect(ids).toHaveLength(new Set(ids).size)
      // The service left records out of these pages, too.
      expect(ids.length).toBeGreaterThan(3_000)
      const rejected = await readFile(join(folderOf(report, 'customers'), 'rejected.jsonl'), 'utf8')
      const lines = rejected.trim().split('\n')
      expect(lines.length).toBeGreaterThan(5)
      expect(lines).toEqual([...new Set(lines)])
    },
  )
})
