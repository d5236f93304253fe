import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { asked, connectTemporal, createWorld, folderOf, startRun, startTestWorker, until } from './world.ts'

test(
  'an item that is not a record is in rejected.jsonl once, also where the read fell back to page by page',
  { tags: ['long'] },
  async () => {
    const noId = { kind: 'wrongType', field: 'id', value: null, records: 50 } as const
    const world = await createWorld({ counts: { plans: 1500 }, faults: [{ kind: 'latency', ms: 100 }, noId] })
    await startTestWorker(world)
    const run = await startRun({ client: await connectTemporal(), world, input: { resources: ['plans'] } })
    await until(() => asked(world) > 6)
    world.sandbox.control.setFaults({ faults: [{ kind: 'ignoreOrdering' }, noId] })
    const report = await run.result()
    expect(report).toMatchObject({ verdict: 'unproven' })
    const lines = (await readFile(join(folderOf(report, 'plans'), 'rejected.jsonl'), 'utf8'))
      .trim()
      .split('\n')
    expect(lines.length).toBeGreaterThan(5)
    expect(lines).toEqual([...new Set(lines)])
  },
)
