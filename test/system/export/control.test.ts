import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { asked, connectTemporal, createWorld, folderOf, startRun, startTestWorker, until } from './world.ts'

// A pause and a stop are heard within four seconds: the read lasts longer, if nobody makes it quick.
const slow = { counts: { customers: 8000 }, faults: [{ kind: 'latency', ms: 500, from: 20 }] } as const
const input = { resources: ['customers' as const] }

describe('an export that people steer', () => {
  test('is refused while another run exports the same to the same place', { tags: ['long'] }, async () => {
    const world = await createWorld(slow)
    await startTestWorker(world)
    const client = await connectTemporal()
    const first = await startRun({ client, world, input })
    await until(() => asked(world) > 3)
    const second = await startRun({ client, world, input })
    await expect(second.result()).rejects.toMatchObject({
      cause: { type: 'Busy', message: expect.stringContaining(first.workflowId) },
    })
    world.sandbox.control.setFaults({ faults: [] })
    expect(await first.result()).toMatchObject({ verdict: 'proven' })
  })

  test('under an id that was used before gets a folder of its own', { tags: ['long'] }, async () => {
    const world = await createWorld({ counts: { plans: 12 } })
    await startTestWorker(world)
    const client = await connectTemporal()
    const name = `what someone typed / ${world.workspace}`
    const plans = { resources: ['plans' as const] }
    const first = await (await startRun({ client, world, input: plans, name })).result()
    const second = await (await startRun({ client, world, input: plans, name })).result()
    expect(folderOf(first, 'plans')).not.toBe(folderOf(second, 'plans'))
    expect(second).toMatchObject({ verdict: 'proven' })
    // What is pruned after 14 days. The same rows are in the list, and the next read proves nothing.
    await rm(join(world.dataDir, 'parts'), { recursive: true })
    world.sandbox.control.setFaults({ faults: [{ kind: 'ignoreOrdering' }] })
    const third = await (await startRun({ client, world, input: plans, name })).result()
    expect(third).toMatchObject({ verdict: 'unproven', run: `${name}.3` })
    expect([folderOf(first, 'plans'), folderOf(second, 'plans')]).not.toContain(folderOf(third, 'plans'))
  })
})
