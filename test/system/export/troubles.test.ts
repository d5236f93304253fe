import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import {
  asked,
  connectTemporal,
  createWorld,
  startCommand,
  startRun,
  startTestWorker,
  until,
  type World,
} from './world.ts'

const slow = { kind: 'latency', ms: 100 } as const
const input = { resources: ['customers' as const] }

interface Run {
  workflowId: string
  query<T>(name: string): Promise<T>
}

const detailsOf = async (run: Run): Promise<string> =>
  (await run.query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails

/** Waits until the run says it: in the command and in the Temporal UI. */
async function says(world: World, run: Run, text: RegExp): Promise<void> {
  await until(async () => text.test(await detailsOf(run)))
  const { stdout } = await callCommand(world, ['run', 'show', run.workflowId])
  expect(stdout).toMatch(text)
}

async function beginExport(env: Record<string, string> = {}) {
  const world = await createWorld({ counts: { customers: 3000 }, faults: [slow] })
  await startTestWorker(world, env)
  const client = await connectTemporal()
  const run = await startRun({ client, world, input })
  await until(() => asked(world) > 12)
  return { world, run }
}

describe('an export that the service holds up', { tags: ['long'] }, () => {
  test('says since when it fails, until it answers again', async () => {
    const { world, run } = await beginExport()
    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 503, html: true }] })
    await says(world, run, /The service answers 503 since \d{4}-.*, attempt \d+\./)
    expect(await detailsOf(run)).toMatch(/customers: The service answers 503/)
    world.sandbox.control.setFaults({ faults: [slow] })
    await until(async () => !(await detailsOf(run)).includes('answers 503'))
    expect(await run.result()).toMatchObject({ verdict: 'proven' })
    expect((await callCommand(world, ['run', 'show', run.workflowId])).stdout).not.toContain('answers 503')
  })

  test('says until when it is asked to pause, and check says it and ends', async () => {
    const { world, run } = await beginExport()
    world.sandbox.control.setFaults({ faults: [{ kind: 'throttle', perSecond: 0.0005 }] })
    await says(world, run, /The service asks for a pause until \d{4}-/)
    const check = await callCommand(world, ['check', '--json'])
    expect(JSON.parse(check.stdout)).toMatchObject({
      findings: expect.arrayContaining([
        expect.objectContaining({
          check: 'service',
          status: 'wrong',
          message: expect.stringMatching(/^The service asks for a pause until .* UTC/),
        }),
      ]),
    })
    await run.signal('stop')
    expect(await run.result()).toMatchObject({ verdict: 'stopped' })
  })

  test('says until when it waits for a new token', async () => {
    const world = await createWorld({ counts: { customers: 3000 }, faults: [slow] })
    const file = join(world.dataDir, 'token')
    await writeFile(file, world.sandbox.token, { mode: 0o600 })
    const worker = startCommand(world, ['worker'], { env: { BILLING_TOKEN: '', BILLING_TOKEN_FILE: file } })
    await worker.says('listening')
    const client = await connectTemporal()
    const run = await startRun({ client, world, input })
    await until(() => asked(world) > 12)
    world.sandbox.control.adjust({ tokens: ['next'] })
    await says(world, run, /refuses the token; the run waits for a new one in its file until \d{4}-/)
    await writeFile(file, 'next')
    expect(await run.result()).toMatchObject({ verdict: 'proven' })
  })
})
