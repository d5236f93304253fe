import { Client, Connection } from '@temporalio/client'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createSandbox } from '../../../sandbox/sandbox.ts'
import { freePorts } from '../../../scripts/dev-server/free-ports.ts'
import { endProcess, identify } from '../../../core/state/process-identity.ts'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import type { watchSchedules } from '../../../workflows/watch-schedules.ts'
import { createWorld, startCommand, until } from '../export/world.ts'
import { openChannel } from '../notify/receiver.ts'

/**
 * Each night takes its seconds: `watch.test.ts` looks at one. A whole week, and longer nights, on a machine that has the
 * minutes for it.
 */
const nights = Number(process.env['CONNECTOR_TEST_NIGHTS'] ?? 6)
const nightMs = Number(process.env['CONNECTOR_TEST_NIGHT_SECONDS'] ?? 5) * 1000
const withinMs = 3 * nightMs

type Disturbance = 'nothing' | 'worker' | 'prevented' | 'temporal' | 'unproven' | 'sandbox'
const disturbances: Disturbance[] = ['nothing', 'worker', 'prevented', 'temporal', 'unproven', 'sandbox']
const disturbanceOf = (night: number) => disturbances[night % disturbances.length]!

async function openHouse() {
  const receiver = await openChannel()
  const options = { counts: { plans: 5 } }
  const world = await createWorld(options)
  const [grpc = 0, ui = 0] = await freePorts(2)
  const binary = () => Promise.resolve(inject('temporalBinary'))
  const serverOptions = { dataDir: world.dataDir, binary, ports: { grpc, ui }, ui: false }
  const env = { TEMPORAL_ADDRESS: `127.0.0.1:${grpc}`, NOTIFY_URL: receiver.url }
  let { sandbox } = world
  let server = await startDevServer(serverOptions)
  const startWorker = async () => {
    const command = startCommand(world, ['worker'], { env })
    await command.says('listening')
    return command
  }
  let worker = await startWorker()
  onTestFinished(async () => {
    worker.child.kill('SIGKILL')
    await worker.ended
    await server.stop()
    await sandbox.close()
  })
  const connection = await Connection.connect({ address: env.TEMPORAL_ADDRESS })
  onTestFinished(() => connection.close())
  return {
    receiver,
    world,
    env,
    client: new Client({ connection }),
    control: () => sandbox.control,
    restart: {
      async worker() {
        worker.child.kill('SIGKILL')
        await worker.ended
        worker = await startWorker()
      },
      /** Away while the night begins: it catches up. */
      async temporal(awayUntil: number) {
        await endProcess({ identity: identify(server.pid)!, graceMs: 0 })
        await server.stop()
        await sleep(Math.max(0, awayUntil - Date.now()))
        server = await startDevServer(serverOptions)
      },
      /** Away while the night begins: the run waits for it. */
      async sandbox(awayUntil: number) {
        await sandbox.close()
        await sleep(Math.max(0, awayUntil - Date.now()))
        const { workspace, port } = sandbox
        sandbox = await createSandbox({ seed: 7, workspace, port, ...options })
      },
    },
  }
}

/** Until it does not fail: the server may be away. */
async function whenThere<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch {
      await sleep(100)
    }
  }
}

test(
  'every night has its one run across restarts of each process, and exactly the prevented ones are told',
  { timeout: nights * nightMs + withinMs + 240_000, tags: ['soak'] },
  async () => {
    const house = await openHouse()
    const { client, world, env, receiver } = house
    const seconds = nightMs / 1000
    const file = join(world.dataDir, 'schedules.yaml')
    const entry = (name: string, text: string) => `  ${name}:\n    ${text}\n`
    const night = `{workflow: exportData, input: {resources: [plans]}, every: ${seconds}s, provenWithin: ${3 * seconds}s}`
    await writeFile(
      file,
      `schedules:\n${entry('night', night)}${entry('watch', '{workflow: watchSchedules, every: 2s}')}`,
    )
    const applied = await startCommand(world, ['schedule', 'apply', file, '--yes'], { env }).ended
    expect(applied).toMatchObject({ code: 0 })

    const handle = client.schedule.getHandle('night')
    const { createdAt } = (await handle.describe()).info
    const first = (Math.floor(createdAt.getTime() / nightMs) + 1) * nightMs
    const runOf = (at: number) => `night-${new Date(at).toISOString().replace('.000Z', 'Z')}`
    const statusOf = (at: number) =>
      client.workflow
        .getHandle(runOf(at))
        .describe()
        .then(
          ({ status }) => status.name,
          () => 'UNKNOWN',
        )
    const ended = (at: number) => async () => {
      const status = await statusOf(at)
      if (status === 'UNKNOWN') {
        // It would never come.
        const { numActionsSkippedOverlap } = await whenThere(async () => (await handle.describe()).info)
        expect(numActionsSkippedOverlap, 'the night before took longer than a night').toBe(0)
      }
      return !['RUNNING', 'UNKNOWN'].includes(status)
    }

    const times = Array.from({ length: nights }, (_, index) => first + index * nightMs)
    const prevented: number[] = []
    for (const [index, at] of times.entries()) {
      const what = disturbanceOf(index)
      // Before the night, once the one before is over.
      await sleep(Math.max(0, at - nightMs * 0.6 - Date.now()))
      if (index > 0) await until(ended(times[index - 1]!))
      if (what === 'worker' || what === 'temporal' || what === 'sandbox') await house.restart[what](at + 300)
      if (what !== 'prevented' && what !== 'unproven') continue
      const fault = what === 'prevented' ? { kind: 'error', status: 403 } : { kind: 'ignoreOrdering' }
      house.control().setFaults({ faults: [fault as { kind: 'ignoreOrdering' }] })
      await until(ended(at))
      house.control().setFaults({ faults: [] })
      prevented.push(at)
    }
    for (const at of times) await until(ended(at))
    await whenThere(() => handle.pause('the week is over'))
    const info = (await handle.describe()).info

    // The last night's time to be proven is over when the watch has looked past it.
    const watch = client.schedule.getHandle('watch')
    const end = times.at(-1)! + withinMs
    await until(async () => {
      const last = (await watch.describe()).info.recentActions.at(-1)
      if (last === undefined || last.scheduledAt.getTime() < end) return false
      await client.workflow.getHandle(last.action.workflow.workflowId).result()
      return true
    })
    const told = () =>
      receiver.received
        .map(({ body }) => body)
        .filter(({ event }) => event.kind === 'missed')
        .map(({ report }) => Date.parse((report as { at: string }).at))
        .filter((at) => at < times.at(-1)! + nightMs)
        .map((at) => Math.floor(at / 1000) * 1000)
        .toSorted((a, b) => a - b)
    await until(() => told().length >= prevented.length)

    console.log(
      JSON.stringify({
        nights: times.map((at, index) => [new Date(at).toISOString(), disturbanceOf(index)]),
        told: told().map((at) => new Date(at).toISOString()),
        skipped: info.numActionsSkippedOverlap,
        missedCatchUp: info.numActionsMissedCatchupWindow,
      }),
    )
    expect(info).toMatchObject({ numActionsSkippedOverlap: 0, numActionsMissedCatchupWindow: 0 })
    expect(told()).toEqual(prevented)
    // Each night was looked at once: every look began where the last one had ended.
    const looked: string[] = []
    const query = "WorkflowType = 'watchSchedules' AND ExecutionStatus = 'Completed'"
    for await (const { workflowId } of client.workflow.list({ query })) {
      const { missed } = await client.workflow.getHandle<typeof watchSchedules>(workflowId).result()
      looked.push(...missed.map(({ at }) => at))
    }
    expect(looked.length).toBeGreaterThanOrEqual(prevented.length)
    expect(new Set(looked).size).toBe(looked.length)
    // One export for each night that was not prevented by a refusal, under the night's own name.
    const folders: string[] = await readdir(join(world.dataDir, 'exports', 'plans'))
    const published = times.filter((_, index) => disturbanceOf(index) !== 'prevented').map(runOf)
    const inWeek = folders
      .flatMap((name) => /^[-\dT]+Z-(night-.*)$/.exec(name)?.[1] ?? [])
      .map(decodeURIComponent)
    expect(inWeek.filter((name) => times.some((at) => name.startsWith(runOf(at)))).toSorted()).toEqual(
      published,
    )
    // The failed and the unproven were told by themselves too.
    const kinds = receiver.kinds()
    expect(kinds.filter((kind) => kind === 'failed' || kind === 'unproven').length).toBeGreaterThanOrEqual(
      prevented.length,
    )
  },
)
