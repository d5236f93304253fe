import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { connectTemporal, createWorld, startRun, startTestWorker } from './world.ts'

test('a record that comes without its id for once is not taken for deleted', async () => {
  const world = await createWorld({ counts: { plans: 1 } })
  await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
  const client = await connectTemporal()
  const export_ = async () =>
    (await startRun({ client, world, input: { resources: ['plans'], to: ['duckdb'] } })).result()
  await export_()
  const noId = { kind: 'wrongType', field: 'id', value: null } as const
  world.sandbox.control.setFaults({ faults: [noId] })
  const report = await export_()
  expect(report).toMatchObject({ verdict: 'proven' })
  expect(JSON.stringify(report)).toMatch(/1 plan was not seen \([^)]+\), and none was marked as deleted/)
  const file = join(world.dataDir, 'warehouse.duckdb')
  const live = 'select count(*) as n from plans where _deleted_at is null'
  expect(await askDuckDb(file, live)).toEqual([{ n: '1' }])
})
