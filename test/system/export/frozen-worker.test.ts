import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import {
  asked,
  connectTemporal,
  createWorld,
  folderOf,
  rowsOf,
  startCommand,
  startRun,
  until,
} from './world.ts'

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test(
  'a worker that is stopped in the middle of a read, given up on and woken again, mixes nothing',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({
      counts: { customers: 6000 },
      faults: [{ kind: 'latency', ms: 250 }],
      drift: { customers: { perSecond: { deletes: 5, inserts: 5, updates: 5 } } },
    })
    const worker = startCommand(world, ['worker'])
    await worker.says('listening')
    const pid = worker.child.pid ?? 0
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    const client = await connectTemporal()
    const run = await startRun({ client, world, input: { resources: ['customers'] } })
    const mark = world.sandbox.control.mark()
    for (let freeze = 0; freeze < 2; freeze += 1) {
      const before = asked(world)
      await until(() => asked(world) > before + 15)
      process.kill(pid, 'SIGSTOP')
      // Temporal gives up on an attempt that was silent for 5 s, and the worker wakes up with it still at work.
      await pause(7_000)
      process.kill(pid, 'SIGCONT')
    }
    const report = await run.result()
    expect(report.verdict).toBe('proven')
    expect(await verifyExport(folderOf(report, 'customers'))).toMatchObject({ problems: [] })
    const ids = (await rowsOf(report, 'customers')).map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const throughout = world.sandbox.control.ids({ resource: 'customers', since: mark }).map(String)
    expect(throughout.length).toBeGreaterThan(5000)
    expect(new Set(throughout).difference(new Set(ids))).toEqual(new Set())

    // More than one attempt has read, so that there was something to mix.
    const ranges = join(world.dataDir, 'parts', report.run, 'customers', 'ranges')
    expect((await readdir(ranges, { recursive: true })).join('\n')).toMatch(/00002-.*\.checkpoint\.json/)
  },
)
