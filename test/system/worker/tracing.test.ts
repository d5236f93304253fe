import { Client } from '@temporalio/client'
import { randomBytes } from 'node:crypto'
import { execFile } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { toDataConverter } from '../../../worker/codec/data-converter.ts'
import { payloadKeys } from '../../../worker/codec/payload-key.ts'
import { replayHistories } from '../../../worker/replay.ts'
import { closeTracing } from '../../../worker/telemetry/tracing/tracing.ts'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, openTestWorker, startCommand, until } from '../export/world.ts'
import { retentionsCsv } from '../import/world.ts'
import { startCollector } from './collector.ts'

const shop = { counts: { customers: 20, subscriptions: 20, plans: 3, retentions: 0 } } as const

describe('with OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  test(
    'command, runs, steps and requests are one trace that holds no text of a row or of a person',
    { tags: ['long'] },
    async () => {
      const collector = await startCollector()
      const key = randomBytes(32).toString('base64')
      const world = await createWorld(shop)
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=planted-key',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=tested',
        CONNECTOR_PAYLOAD_KEY: key,
        BILLING_SETTLE_SECONDS: '0.1',
      }
      const worker = await openTestWorker(world, env)
      const command = async (...words: string[]) => {
        const { code, stdout, stderr } = await callCommand(world, [...words, '--json'], { env })
        expect({ code, stderr }, words.join(' ')).toMatchObject({ code: 0 })
        return JSON.parse(stdout) as { run: string }
      }
      const [record] = world.sandbox.control.records({ resource: 'customers' })
      const { email } = JSON.parse(record ?? '{}') as { email: string }
      const exported = await command('export', 'customers', '--filter', `email=${email}`)
      const file = join(world.dataDir, 'rows.csv')
      await writeFile(file, retentionsCsv(2, { mark: 'Honorarios de Rosa Araya' }))
      const imported = await command('import', 'retentions', file, '--wait-for-approval', '--detach')
      const status = () => callCommand(world, ['status', imported.run, '--json'], { env })
      await until(async () => (await status()).stdout.includes('waitingFor'))
      const why = 'Rosa Araya pidió el reembolso'
      await command('approve', imported.run, '--by', 'Carla Muñoz', '--why', why)
      await command('watch', imported.run)
      // As a schedule starts it, without a trace; its failure says what somebody typed.
      const { connection } = await connectTemporal()
      const client = new Client({ connection, dataConverter: toDataConverter(payloadKeys.parse(key)) })
      const failing = await client.workflow.start('exportData', {
        workflowId: `failing-${world.workspace}`,
        taskQueue: world.taskQueue,
        args: [{ resources: ['customers'], filters: { 'Rosa Araya': why } }],
      })
      await expect(failing.result()).rejects.toMatchObject({
        cause: { message: expect.stringContaining('Rosa Araya') },
      })
      await worker.stop()
      expect(await closeTracing()).toEqual({ isSent: true, problems: [] })

      const spans = collector.spans()
      const parentOf = ({ traceId, parentSpanId }: (typeof spans)[number]) =>
        spans.find((span) => span.traceId === traceId && span.spanId === parentSpanId)
      const named = (name: string, run: string) => {
        const traces = spans
          .filter(({ attributes }) => attributes['temporalWorkflowId'] === run)
          .map(({ traceId }) => traceId)
        return spans.filter((span) => span.name === name && traces.includes(span.traceId))
      }
      const chain = (span: (typeof spans)[number] | undefined): string[] =>
        span === undefined ? [] : [span.name, ...chain(parentOf(span))]
      expect(chain(named('list customers', exported.run).at(-1))).toEqual([
        'list customers',
        'RunActivity:readSegment',
        'RunWorkflow:exportData',
        'StartWorkflow:exportData',
      ])
      expect(chain(named('create retention', imported.run)[0])).toEqual([
        'create retention',
        'RunActivity:sendImport',
        'RunWorkflow:importFile',
        'StartWorkflow:importFile',
      ])
      expect(new Set(named('RunActivity:closeImport', imported.run).map(({ traceId }) => traceId)).size).toBe(
        1,
      )
      expect(spans.map(({ name }) => name)).toContain('StartWorkflowUpdate:approve')
      expect(spans.filter(({ name }) => name.startsWith('QueryWorkflow'))).toEqual([])
      const [failed] = named('RunWorkflow:exportData', failing.workflowId)
      expect(failed).toMatchObject({
        traceId: failing.firstExecutionRunId.replaceAll('-', ''),
        parentSpanId: '',
        status: { code: 2, message: '' },
        attributes: { 'error.type': 'FilterError' },
        resource: {
          'service.name': 'billing-connector',
          'billing.workspace': world.workspace,
          'billing.mode': 'live',
          'deployment.environment': 'tested',
        },
      })
      expect(named('RunActivity:openExport', failing.workflowId)[0]).toMatchObject({
        parentSpanId: failed?.spanId,
        status: { code: 2, message: '' },
        attributes: { 'error.type': 'FilterError' },
      })
      expect(spans.flatMap(({ events }) => events)).toEqual([])
      expect(collector.headers[0]).toMatchObject({ 'x-api-key': 'planted-key' })

      const sent = Buffer.concat(collector.bodies)
      expect(sent.includes(world.workspace)).toBe(true)
      const { token } = world.sandbox
      const planted = [
        email,
        why,
        'Rosa',
        'Araya',
        'Carla',
        'Honorarios',
        token,
        key,
        'planted-key',
        world.dataDir,
      ]
      expect(planted.filter((text) => sent.includes(text))).toEqual([])

      // What Temporal keeps unencrypted in the headers are the ids of spans, and the run replays untraced.
      const history = await client.workflow.getHandle(exported.run).fetchHistory()
      const headers = (history.events ?? []).flatMap((event) => [
        event.workflowExecutionStartedEventAttributes?.header?.fields ?? {},
        event.activityTaskScheduledEventAttributes?.header?.fields ?? {},
      ])
      const texts = headers
        .flatMap(Object.entries)
        .map(([name, { data }]) => `${name} ${Buffer.from(data ?? []).toString()}`)
      expect(texts.length).toBeGreaterThan(2)
      for (const text of texts)
        expect(text).toMatch(/^_tracer-data \{"traceparent":"00-[0-9a-f]{32}-[0-9a-f]{16}-01"\}$/)
      const runs = (function* () {
        yield { workflowId: exported.run, history }
      })()
      for await (const { error } of replayHistories({ runs, payloadKeys: payloadKeys.parse(key) }))
        expect(error).toBeUndefined()
    },
  )

  test('and OTEL_SDK_DISABLED, nothing is sent and no header is written', async () => {
    const collector = await startCollector()
    const world = await createWorld(shop)
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SDK_DISABLED: 'true' }
    const worker = await openTestWorker(world, env)
    const { code, stdout, stderr } = await callCommand(world, ['export', 'plans', '--json'], { env })
    expect(code, stderr).toBe(0)
    await worker.stop()
    await closeTracing()
    expect(collector.bodies).toEqual([])
    const { run } = JSON.parse(stdout) as { run: string }
    const { events } = await (await connectTemporal()).workflow.getHandle(run).fetchHistory()
    const headers = (events ?? []).map((event) => event.activityTaskScheduledEventAttributes?.header?.fields)
    expect(headers.filter((fields) => Object.keys(fields ?? {}).length > 0)).toEqual([])
  })

  test(
    'a run is proven while the collector is away, and the worker says so once',
    { tags: ['long'] },
    async () => {
      const world = await createWorld(shop)
      const closed = createServer().listen(0, '127.0.0.1')
      await once(closed, 'listening')
      const { port } = closed.address() as AddressInfo
      closed.close()
      const url = `http://127.0.0.1:${port}`
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '10' }
      const worker = startCommand(world, ['worker'], { env })
      await worker.says('listening')
      for (const resource of ['plans', 'customers']) {
        const { code, stderr } = await callCommand(world, ['export', resource, '--json'], { env })
        expect(code, stderr).toBe(0)
      }
      const { problems } = await closeTracing()
      const sentence = `Traces do not reach ${url} (ECONNREFUSED); runs continue without them.`
      expect(problems).toEqual([sentence])
      await worker.says(sentence)
      worker.child.kill('SIGTERM')
      const { stderr } = await worker.ended
      expect(stderr.split(sentence)).toHaveLength(2)
    },
  )

  test('a command ends although the collector never answers, and says so', { tags: ['long'] }, async () => {
    const collector = await startCollector({ isSilent: true })
    const world = await createWorld(shop)
    const worker = await openTestWorker(world)
    onTestFinished(() => worker.stop())
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      // Longer than the test may take.
      OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
    }
    const { code, stdout, stderr } = await startCommand(world, ['export', 'plans'], { env }).ended
    expect(code, stderr).toBe(0)
    expect(stdout).toMatch(/plans +csv +proven/)
    expect(stderr).toContain(
      `Traces do not reach ${collector.url} (no answer in 2 s); runs continue without them.`,
    )
  })
})

test('without the variable, nothing of OpenTelemetry is loaded but what the metrics need', async () => {
  const loaded = async (env: Record<string, string>) => {
    const code = `
      import { createRequire } from 'node:module'
      await import('./scripts/command-line.ts')
      await import('./worker/start-worker.ts')
      const { openTracing, tracedClient } = await import('./worker/telemetry/tracing/tracing.ts')
      const settings = { environment: process.env, taskQueue: 'q', billing: { workspace: 'w', testMode: false } }
      tracedClient(settings)
      await openTracing(settings)
      const names = Object.keys(createRequire(import.meta.url).cache)
      console.log(JSON.stringify(names.filter((name) => /opentelemetry(?![/]api[/])/.test(name))))`
    const words = ['--input-type=module', '-e', code]
    const { stdout } = await promisify(execFile)(process.execPath, words, {
      env: { PATH: process.env['PATH'], ...env },
    })
    return JSON.parse(stdout) as string[]
  }
  expect(await loaded({})).toEqual([])
  expect((await loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })).length).toBeGreaterThan(50)
})
