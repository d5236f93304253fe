import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { asked, connectTemporal, createWorld, startRun, startTestWorker } from './world.ts'

test('an export into a warehouse with a read from the future is refused before a list is read', async () => {
  const world = await createWorld({ counts: { plans: 3 } })
  await startTestWorker(world)
  const client = await connectTemporal()
  const export_ = async () =>
    (await startRun({ client, world, input: { resources: ['plans'], to: ['duckdb'] } })).result()
  const { run } = await export_()
  const file = join(world.dataDir, 'warehouse.duckdb')
  // As a worker whose clock was ahead leaves it.
  await askDuckDb(
    file,
    `update _exports set manifest = json_merge_patch(manifest, '{"startedAt": "2099-01-01T00:00:00.000Z"}')`,
  )
  const before = asked(world)
  await expect(export_()).rejects.toMatchObject({
    cause: {
      type: 'OlderReadError',
      message: expect.stringContaining(
        `a read of plans from the future: the run ${run} began to read at 2099-01-01T00:00:00.000Z`,
      ),
    },
  })
  expect(asked(world)).toBe(before)
})
