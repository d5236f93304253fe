import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connectTemporal, createWorld, folderOf, rowsOf, startRun, startTestWorker } from './world.ts'

test('parts that turn out damaged fail one run with a sentence, and the next reads the list from the start', async () => {
  const world = await createWorld({ counts: { customers: 150 } })
  await startTestWorker(world)
  const client = await connectTemporal()
  const run = () => startRun({ client, world, input: { resources: ['customers'] } })
  // Nothing can be published while a file lies where the folder of the resource must be.
  const place = join(world.dataDir, 'exports', 'customers')
  await mkdir(join(place, '..'), { recursive: true })
  await writeFile(place, '')
  const unpublished = await run()
  await expect(unpublished.result()).rejects.toThrow('Workflow execution failed')
  await rm(place)

  const parts = join(world.dataDir, 'parts', unpublished.workflowId, 'customers')
  for (const name of (await readdir(parts)).filter((one) => one.startsWith('customers.'))) {
    const text = await readFile(join(parts, name), 'utf8')
    await writeFile(join(parts, name), text.replace('\n', ' '))
  }
  await expect((await run()).result()).rejects.toMatchObject({
    cause: { message: expect.stringContaining('run it again') },
  })
  const report = await (await run()).result()
  expect(report.verdict).toBe('proven')
  expect(folderOf(report, 'customers')).toContain('exports')
  expect(await rowsOf(report, 'customers')).toHaveLength(150)
})

test('records of hidden statuses are published once though their ids are hashed', async () => {
  const hide = { kind: 'hide', statuses: ['cancelled'] } as const
  const world = await createWorld({ counts: { subscriptions: 400 }, faults: [hide] })
  await startTestWorker(world, { CONNECTOR_HASH_KEY: 'a key of sixteen or more' })
  const client = await connectTemporal()
  const input = { resources: ['subscriptions' as const], hash: ['subscriptions.id'] }
  const report = await (await startRun({ client, world, input })).result()
  expect(report.verdict).toBe('proven')
  const ids = (await rowsOf(report, 'subscriptions')).map(({ id }) => id)
  expect(new Set(ids).size).toBe(400)
  expect(ids).toHaveLength(400)
})
