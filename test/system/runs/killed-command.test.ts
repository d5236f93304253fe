import type { Client } from '@temporalio/client'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import {
  connectTemporal,
  createWorld,
  startCommand,
  startTestWorker,
  until,
  type World,
} from '../export/world.ts'
import { addonsCsv } from '../import/world.ts'
import { breakSome, idsOf, well } from '../recovery/world.ts'

const slow = { kind: 'latency', ms: 2_000 } as const

const openRun = async (client: Client, { taskQueue }: World): Promise<string | undefined> => {
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
  for await (const { workflowId } of client.workflow.list({ query })) return workflowId
  return undefined
}

test.each([
  ['export', () => ['export', 'plans'], 'another'],
  ['recover', () => ['recover', '--input', 'coolDown=0'], 'another'],
  ['import', (world: World) => ['import', 'addons', join(world.dataDir, 'addons.csv')], 'same'],
] as const)(
  '%s, killed while it followed a run that has ended since, starts the next run, except that an import is done once',
  { tags: ['long'] },
  async (_, wordsOf, next) => {
    const world = await createWorld(well)
    breakSome(world, { ids: idsOf(world).slice(0, 3), reason: 'gateway_issue' })
    writeFileSync(join(world.dataDir, 'addons.csv'), addonsCsv(3))
    await startTestWorker(world, { BILLING_SETTLE_SECONDS: '0.05' })
    const client = await connectTemporal()
    const words = [...wordsOf(world), '--json']
    world.sandbox.control.setFaults({ faults: [slow] })
    const first = startCommand(world, words)
    await first.says('Run ')
    await until(async () => (await openRun(client, world)) !== undefined)
    const run = (await openRun(client, world)) ?? ''
    first.child.kill('SIGSTOP')
    world.sandbox.control.setFaults({ faults: [] })
    await client.workflow.getHandle(run).result()
    first.child.kill('SIGKILL')
    const again = await callCommand(world, words)
    const { run: second } = JSON.parse(again.stdout) as { run: string }
    expect(again.code, again.stderr).toBe(0)
    expect(second).toBe(next === 'same' ? run : `${run}.2`)
    if (next === 'same') expect((await callCommand(world, words)).code).toBe(0)
  },
)
