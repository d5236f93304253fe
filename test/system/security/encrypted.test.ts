import { Client, type ScheduleDescription } from '@temporalio/client'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import proto from '@temporalio/proto'
import { expect, onTestFinished, test } from 'vitest'
import { toDataConverter } from '../../../worker/codec/payload-codec.ts'
import { payloadKeys } from '../../../worker/settings/kinds.ts'
import {
  connectTemporal,
  createWorld,
  openTestWorker,
  startTestWorker,
  until,
  type World,
} from '../export/world.ts'
import { callCommand } from '../command-line/call-command.ts'
import { retentionsCsv } from '../import/world.ts'
import { breakSome, idsOf } from '../recovery/world.ts'

const newKey = () => randomBytes(32).toString('base64')
const withKey = (client: Client, key: string) =>
  new Client({ connection: client.connection, dataConverter: toDataConverter(payloadKeys.parse(key)) })

/** Everything that Temporal keeps of the runs of a task queue, as bytes. */
async function keptOf(client: Client, taskQueue: string) {
  const { History } = proto.temporal.api.history.v1
  const { DescribeWorkflowExecutionResponse } = proto.temporal.api.workflowservice.v1
  const kept: { run: string; type: string; plain: string[]; bytes: Buffer }[] = []
  const namespace = 'default'
  const query = `TaskQueue = '${taskQueue}'`
  const { executions } = await client.workflowService.listWorkflowExecutions({ namespace, query })
  for (const { execution, type } of executions) {
    const { workflowId, runId } = execution as { workflowId: string; runId: string }
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory()
    const described = await client.workflowService.describeWorkflowExecution({
      namespace,
      execution: execution!,
    })
    kept.push({
      run: workflowId,
      type: type?.name ?? '',
      plain: [...plainIn(history), ...plainIn(described)],
      bytes: Buffer.concat([
        History.encode(history).finish(),
        DescribeWorkflowExecutionResponse.encode(described).finish(),
      ]),
    })
  }
  return kept
}

test('runs are listed without the key of one that has ended', async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  const env = { CONNECTOR_PAYLOAD_KEY: newKey() }
  const worker = await openTestWorker(world, env)
  const exported = await callCommand(world, ['export', 'plans', '--json'], { env })
  expect(exported.code, exported.stderr).toBe(0)
  await worker.stop()
  await startTestWorker(world)
  const { run } = JSON.parse(exported.stdout) as { run: string }
  const listed = async () => {
    const { code, stdout, stderr } = await callCommand(world, ['run', 'list', '--json'])
    expect({ code, stderr }).toMatchObject({ code: 0 })
    return JSON.parse(stdout) as unknown
  }
  // Temporal's list of runs follows a little later.
  await expect.poll(listed).toMatchObject({ runs: [{ run, verdict: 'proven' }] })
})

/** Where payloads lie that are not encrypted. Search attributes never are: the server has to read them. */
function* plainIn(value: unknown, path = ''): Generator<string> {
  if (typeof value !== 'object' || value === null || path.endsWith('.searchAttributes')) return
  const { encoding } = (value as { metadata?: { encoding?: Uint8Array } | null }).metadata ?? {}
  if (encoding !== undefined && Buffer.from(encoding).toString() !== 'binary/encrypted') yield path
  for (const [name, inner] of Object.entries(value)) yield* plainIn(inner, `${path}.${name}`)
}

const bytesOf = (raw: ScheduleDescription['raw']) =>
  Buffer.from(proto.temporal.api.workflowservice.v1.DescribeScheduleResponse.encode(raw).finish())

const found = (kept: { run: string; bytes: Buffer }[], needles: readonly string[]) =>
  kept.flatMap(({ run, bytes }) =>
    needles.filter((one) => bytes.includes(one)).map((one) => `${one} in ${run}`),
  )

/** Exports, imports and recoveries with something private in every place that a run has for it. */
async function playRuns(of: { world: World; client: Client; env?: Record<string, string> }) {
  const { world, client, env = {} } = of
  const command = async (...words: string[]) => {
    const { code, stdout, stderr } = await callCommand(world, [...words, '--json'], { env })
    return { code, stdout, stderr, document: JSON.parse(stdout || '{}') as Record<string, unknown> }
  }
  const customer = JSON.parse([...world.sandbox.control.records({ resource: 'customers' })][0] ?? '{}') as {
    email: string
  }
  const exported = await command('export', 'customers', '--filter', `email=${customer.email}`)
  expect(exported.code, exported.stderr).toBe(0)

  const file = join(world.dataDir, 'rows.csv')
  await writeFile(file, retentionsCsv(12, { mark: 'Honorarios de Rosa Araya' }))
  const imported = await command('import', 'retentions', file, '--wait-for-approval', '--detach')
  expect(imported.code, imported.stderr).toBe(0)
  const importRun = String(imported.document['run'])
  await until(async () => 'waitingFor' in (await command('run', 'show', importRun)).document)
  const why = 'Rosa Araya pidió el reembolso'
  const approved = await command('run', 'approve', importRun, '--by', 'Carla Muñoz', '--why', why)
  expect(approved.code, approved.stderr).toBe(0)
  const watched = await command('run', 'watch', importRun)
  expect(watched.document).toMatchObject({ counts: { done: 12 } })

  breakSome(world, { ids: idsOf(world).slice(0, 3), reason: 'gateway_issue' })
  const quickly = ['--input', 'coolDown=0']
  const recovering = await command('recover', ...quickly, '--wait-for-approval', '--detach')
  const recoverRun = String(recovering.document['run'])
  await until(async () => 'waitingFor' in (await command('run', 'show', recoverRun)).document)
  expect((await command('run', 'approve', recoverRun, '--by', 'Carla Muñoz', '--why', why)).code).toBe(0)
  const recovered = await command('run', 'watch', recoverRun)
  expect(recovered.document, recovered.stderr).toMatchObject({ counts: { done: 3 } })

  const report = await command('run', 'report', importRun)
  expect(report.code, report.stderr).toBe(0)
  const runs = await command('run', 'list')
  expect((runs.document['runs'] as unknown[]).length).toBeGreaterThan(2)

  // A run that fails, with words that somebody typed.
  const failing = client.workflow.execute('exportData', {
    workflowId: `failing-${world.workspace}`,
    taskQueue: world.taskQueue,
    args: [{ resources: ['customers'], filters: { 'Rosa Araya': why } }],
  })
  await expect(failing).rejects.toMatchObject({ cause: { message: expect.stringContaining('Rosa Araya') } })
  return { importRun, email: customer.email, why, file }
}

const shop = {
  counts: { customers: 20, subscriptions: 20, plans: 3, retentions: 0 },
  needsAttention: 0,
} as const

test(
  'with a key, Temporal keeps nothing that people typed or that a record holds, and every command works',
  { tags: ['long'] },
  async () => {
    const key = newKey()
    const env = { CONNECTOR_PAYLOAD_KEY: key, BILLING_SETTLE_SECONDS: '0.1' }
    const world = await createWorld(shop)
    await startTestWorker(world, env)
    const client = await connectTemporal()
    const played = await playRuns({ world, client: withKey(client, key), env })
    const { email, why, file, importRun } = played
    const needles = [email, why, 'Rosa', 'Araya', 'Carla', 'llam', file, 'at async']
    const kept = await keptOf(client, world.taskQueue)
    expect(kept.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['exportData', 'importFile', 'recoverSubscriptions']),
    )
    expect(found(kept, [world.taskQueue]).length).toBe(kept.length)
    expect(found(kept, ['Encoded failure']).length).toBeGreaterThan(0)
    expect(found(kept, needles)).toEqual([])
    expect(kept.flatMap(({ plain }) => plain)).toEqual([])

    const status = await withKey(client, key)
      .workflow.getHandle(importRun)
      .query<{ counts: object }>('status')
    expect(status.counts).toMatchObject({ done: 12 })
  },
)

test('a command and a worker with different keys refuse each other before anything is started', async () => {
  const [one, other] = [newKey(), newKey()]
  const world = await createWorld(shop)
  const worker = await startTestWorker(world, { CONNECTOR_PAYLOAD_KEY: one })
  const say = async (key: string, ...words: string[]) => {
    const { code, stderr } = await callCommand(world, words, { env: { CONNECTOR_PAYLOAD_KEY: key } })
    return { code, stderr }
  }
  const idOf = (key: string) => payloadKeys.parse(key)[0]?.id ?? ''
  const sentence = (ours: string) =>
    `error: The worker encrypts what Temporal keeps with the key ${idOf(one)}, and this command with ${ours}.`
  for (const [key, ours, words] of [
    ['', 'no key', ['export', 'plans']],
    [other, `the key ${idOf(other)}`, ['run', 'approve', 'import-x', '--why', 'x']],
    // It could read the worker's payloads, and the worker not its own.
    [`${other} ${one}`, `the key ${idOf(other)}`, ['run', 'list']],
  ] as const) {
    const { code, stderr } = await say(key, ...words)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(sentence(ours)) })
    expect(stderr).toContain('Give both the same CONNECTOR_PAYLOAD_KEY_FILE. Nothing was started.')
  }
  // A second key that only decrypts is how a rotation begins.
  expect((await say(`${one} ${other}`, 'export', 'plans')).code).toBe(0)
  await worker.stop()
  expect(await keptOf(await connectTemporal(), world.taskQueue)).toHaveLength(1)
})

test('an export takes the next id where a connector with another key has the first', async () => {
  const key = newKey()
  const env = { CONNECTOR_PAYLOAD_KEY: key }
  const world = await createWorld(shop)
  await startTestWorker(world, env)
  const other = withKey(await connectTemporal(), newKey())
  const taken: string[] = []
  for (let second = 0; second < 8; second += 1) {
    const time = new Date(Date.now() + second * 1000).toISOString().slice(0, 19)
    taken.push(`export-plans-${time.replaceAll(/[-:]/g, '').replace('T', '-')}`)
  }
  const runs = await Promise.all(
    taken.map((workflowId) =>
      other.workflow.start('exportData', {
        workflowId,
        taskQueue: `${world.taskQueue}-other`,
        args: [{ resources: ['plans'] }],
        memo: { inputHash: 'of another connector' },
      }),
    ),
  )
  onTestFinished(async () => {
    await Promise.all(runs.map((run) => run.terminate()))
  })
  const { code, stderr } = await callCommand(world, ['export', 'plans', '--detach'], { env })
  expect(code, stderr).toBe(0)
  // Temporal lists a run a little after its start.
  await until(async () => (await keptOf(other, world.taskQueue)).length > 0)
})

test(
  'a worker without the key of an open run waits, and the run ends once the key is there',
  { tags: ['long'] },
  async () => {
    const key = newKey()
    const world = await createWorld(shop)
    const env = { CONNECTOR_PAYLOAD_KEY: key }
    const client = withKey(await connectTemporal(), key)
    const run = await client.workflow.start('exportData', {
      workflowId: `waits-${world.workspace}`,
      taskQueue: world.taskQueue,
      args: [{ resources: ['plans'] }],
    })
    const keyless = await openTestWorker(world)
    const events = async () => (await run.fetchHistory()).events ?? []
    const failure = async () => {
      const failed = (await events()).find((event) => event.workflowTaskFailedEventAttributes)
      return failed?.workflowTaskFailedEventAttributes?.failure
    }
    await until(async () => (await failure()) !== undefined)
    expect((await failure())?.message).toContain('and this process has no key.')
    expect((await run.describe()).status.name).toBe('RUNNING')
    await keyless.stop()
    await startTestWorker(world, env)
    expect(await run.result()).toMatchObject({ verdict: 'proven' })
  },
)

test('schedules work with a key, beside those of a connector with another key in the same namespace', async () => {
  const worlds = await Promise.all([createWorld(shop), createWorld(shop)])
  const client = await connectTemporal()
  for (const [at, world] of worlds.entries()) {
    const [key, next] = [newKey(), newKey()]
    const env = { CONNECTOR_PAYLOAD_KEY: key }
    await startTestWorker(world, { CONNECTOR_PAYLOAD_KEY: `${key} ${next}` })
    const name = `nightly-${world.workspace}`
    const file = join(world.dataDir, 'schedules.yaml')
    await writeFile(
      file,
      `timezone: UTC\nschedules:\n  ${name}:\n    workflow: exportData\n    input: {resources: [customers], filters: {email: rosa@araya.cl}}\n    cron: "30 2 * * *"\n`,
    )
    const schedule = async (...words: string[]) => {
      const { code, stdout, stderr } = await callCommand(world, ['schedule', ...words, '--json'], { env })
      expect(code, stderr).toBe(0)
      return JSON.parse(stdout) as Record<string, { name: string; action: string }[]>
    }
    expect((await schedule('apply', file, '--yes'))['changes']).toMatchObject([{ action: 'create', name }])
    expect((await schedule('apply', file, '--yes'))['changes']).toMatchObject([{ action: 'keep', name }])
    await until(async () => (await schedule('list'))['schedules']?.length === 1)
    const { raw } = await withKey(client, key).schedule.getHandle(name).describe()
    const kept = { run: name, bytes: bytesOf(raw) }
    expect(found([kept], ['araya', 'customers', 'madeBy', 'json/plain', 'nightly']), `world ${at}`).toEqual([
      `madeBy in ${name}`,
      `nightly in ${name}`,
    ])
    env.CONNECTOR_PAYLOAD_KEY = `${next} ${key}`
    expect((await schedule('apply', file, '--yes'))['changes']).toMatchObject([
      { action: 'update', name, differences: ['encrypted with the key in use'] },
    ])
    expect((await schedule('apply', file, '--yes'))['changes']).toMatchObject([{ action: 'keep', name }])
    onTestFinished(() => client.schedule.getHandle(name).delete())
  }
})
