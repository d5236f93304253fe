import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, folderOf, rowsOf, startRun, startTestWorker } from './world.ts'

test('a part with other bytes of the same length fails the publication with a sentence, and the next run is proven', async () => {
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

  const parts = join(world.dataDir, 'parts', unpublished.workflowId, 'customers', 'ranges', '00')
  for (const name of (await readdir(parts)).filter((one) => one.startsWith('customers.'))) {
    const text = await readFile(join(parts, name), 'utf8')
    await writeFile(join(parts, name), text.replace('\n', ' '))
  }
  const again = await callCommand(world, ['run', 'publish', unpublished.workflowId])
  expect(again.code).not.toBe(0)
  expect(again.stderr).toMatch(/has other bytes than were written\. Run the export again/)
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
