import { expect, test } from 'vitest'
import { connectTemporal, createWorld, startTestWorker } from '../export/world.ts'
import { once, putFile, quick, retentionsCsv, sheetOf, startImport, timesOf } from './world.ts'

const empty = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }

test('each of 60 retentions is there once, and the run is proven', async () => {
  const world = await createWorld({ counts: empty })
  await startTestWorker(world)
  const client = await connectTemporal()
  const file = await putFile(world, retentionsCsv(60))
  const run = await startImport({ client, world, input: { kind: 'retentions', file, ...quick } })
  const result = await run.result()
  expect(result).toMatchObject({ verdict: 'proven', counts: { done: 60 } })
  expect(timesOf(world, 'retentions', 60)).toEqual(once(60))
  expect(await sheetOf(result, 'results')).toHaveLength(60)
})
