import type { WorkflowHandle } from '@temporalio/client'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ExportProgress } from '../../../workflows/export-view.ts'
import {
  asked,
  connectTemporal,
  createWorld,
  folderOf,
  startRun,
  startTestWorker,
  until,
  type World,
} from './world.ts'

// A pause and a stop are heard within four seconds: the read lasts longer, if nobody makes it quick.
const slow = { counts: { customers: 8000 }, faults: [{ kind: 'latency', ms: 500, from: 20 }] } as const
const input = { resources: ['customers' as const] }

const phase = async (handle: WorkflowHandle) => (await handle.query<ExportProgress>('status')).phase

/** Until the service has not been asked for a while: the run's requests in flight have ended. */
async function quiet(world: World): Promise<void> {
  for (let before = -1; before !== asked(world);) {
    before = asked(world)
    await new Promise((resolve) => setTimeout(resolve, 700))
  }
}

describe('an export that people steer', () => {
  test(
    'asks nothing while it is paused, and is proven after it was unpaused',
    { tags: ['long'] },
    async () => {
      const world = await createWorld(slow)
      await startTestWorker(world)
      const run = await startRun({ client: await connectTemporal(), world, input })
      await until(() => asked(world) > 8)
      await run.signal('pause')
      await until(async () => (await phase(run)) === 'paused')
      await quiet(world)
      const whilePaused = asked(world)
      expect(whilePaused).toBeLessThan(80)
      world.sandbox.control.setFaults({ faults: [] })
      await run.signal('unpause')
      const report = await run.result()
      expect(report).toMatchObject({ verdict: 'proven' })
      // Nothing was read twice but what was in flight.
      expect(asked(world)).toBeLessThan(115)
    },
  )

  test.each(['stop', 'Request Cancellation'])(
    'ends with a report on %s and reads nothing more; the next run of the same input is proven',
    async (how) => {
      const world = await createWorld(slow)
      await startTestWorker(world)
      const client = await connectTemporal()
      const run = await startRun({ client, world, input })
      await until(() => asked(world) > 20)
      await (how === 'stop' ? run.signal('stop') : run.cancel())
      const stopped = await run.result()
      expect(stopped).toMatchObject({
        verdict: 'stopped',
        exports: [{ resource: 'customers', stopped: true }],
      })
      const before = asked(world)
      await quiet(world)
      // The read had ended before the run did.
      expect(asked(world)).toBe(before)
      world.sandbox.control.setFaults({ faults: [] })
      const report = await (await startRun({ client, world, input })).result()
      expect(report).toMatchObject({ verdict: 'proven', exports: [{ published: [{ records: 8000 }] }] })
    },
  )

  test('that was terminated leaves its lease to the next run', { tags: ['long'] }, async () => {
    const world = await createWorld(slow)
    await startTestWorker(world)
    const client = await connectTemporal()
    const run = await startRun({ client, world, input })
    await until(() => asked(world) > 20)
    await run.terminate()
    await quiet(world)
    world.sandbox.control.setFaults({ faults: [] })
    const report = await (await startRun({ client, world, input })).result()
    expect(report).toMatchObject({ verdict: 'proven', exports: [{ published: [{ records: 8000 }] }] })
  })

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

  test('shows in its current details where it is and what each button does', { tags: ['long'] }, async () => {
    const world = await createWorld(slow)
    await startTestWorker(world)
    const run = await startRun({ client: await connectTemporal(), world, input })
    await until(() => asked(world) > 3)
    const { definition, currentDetails } = await run.query<{
      definition: { signalDefinitions: { name: string; description: string }[] }
      currentDetails: string
    }>('__temporal_workflow_metadata')
    expect(currentDetails).toContain(`**LIVE** ${world.workspace}`)
    expect(currentDetails.replaceAll('\u00a0', '')).toContain('| customers | reading |')
    expect(currentDetails).toContain('unpause')
    const signals = definition.signalDefinitions
    expect(signals.map(({ name }) => name).toSorted()).toEqual(['pause', 'stop', 'unpause'])
    expect(signals.every(({ description }) => description.length > 20)).toBe(true)
    world.sandbox.control.setFaults({ faults: [] })
    await run.result()
  })
})
