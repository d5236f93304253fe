import type { WorkflowHandle } from '@temporalio/client'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { connectTemporal, createWorld, historyOf, startRun, startTestWorker, until } from '../export/world.ts'
import { addonsCsv, putFile, quick as quickImport, retentionsCsv, startImport } from '../import/world.ts'
import type { fetchDocuments, publishRun } from '../../../workflows/export-run.ts'
import type { recoverSubscriptions } from '../../../workflows/recover-subscriptions.ts'
import { breakSome, idsOf } from '../recovery/world.ts'
import { toBody, type Notification } from '../../../core/notifications/notification.ts'
import { startWorkerProcess } from '../worker/worker-process.ts'
import { openChannel } from './receiver.ts'

const plans = { resources: ['plans' as const] }
/** Lists that do not honour any order can't be proven. */
const unprovable = { counts: { plans: 5 }, lists: { plans: { orderings: [] } } }

/** An export that ends unproven beside a worker with these channels, and the run that notifies of it. */
async function endUnproven(NOTIFY_URL: string, more: { env?: Record<string, string>; name?: string } = {}) {
  const world = await createWorld(unprovable)
  const worker = await startTestWorker(world, { NOTIFY_URL, ...more.env })
  const client = await connectTemporal()
  const run = await startRun({ client, world, input: plans, ...(more.name && { name: more.name }) })
  const report = await run.result()
  expect(report.verdict).toBe('unproven')
  const { runId } = await run.describe()
  const delivery: WorkflowHandle = client.workflow.getHandle(`${run.workflowId}/unproven/${runId}`)
  return { world, worker, client, run, runId, report, delivery }
}

describe('people are notified', () => {
  test('of an unproven export, with its report, what to type and where to look', async () => {
    const receiver = await openChannel()
    const env = { CONNECTOR_UI_URL: 'http://127.0.0.1:8080' }
    const { world, run, runId, report } = await endUnproven(receiver.url, { env })
    await until(() => receiver.received.length > 0)
    const [{ body, id }] = receiver.received as [(typeof receiver.received)[0]]
    expect(body).toMatchObject({
      event: { kind: 'unproven', level: 'problems' },
      workspace: world.workspace,
      mode: 'live',
      run: { workflowId: run.workflowId, type: 'exportData' },
      summary: report.summary,
      command: `npx connector run report ${run.workflowId}`,
    })
    expect(body.report).toEqual(JSON.parse(JSON.stringify(report)))
    expect(body.event.id).toBe(id)
    expect(body.run.url).toBe(`http://127.0.0.1:8080/namespaces/default/workflows/${run.workflowId}/${runId}`)
    expect(body.text.split('\n')).toEqual([
      `*LIVE ${world.workspace}: ${run.workflowId} ended unproven*`,
      expect.stringContaining('plans unproven'),
      `\`npx connector run report ${run.workflowId}\``,
      `<${body.run.url}>`,
    ])
  })

  test('of a failed run that began, and not of one that was refused to the person who started it', async () => {
    const receiver = await openChannel()
    const world = await createWorld({
      counts: { plans: 5 },
      faults: [{ kind: 'error', status: 403, from: 2 }],
    })
    await startTestWorker(world, { NOTIFY_URL: receiver.url })
    const client = await connectTemporal()
    const refused = await startRun({ client, world, input: { resources: [] } })
    await expect(refused.result()).rejects.toMatchObject({ cause: { type: 'InvalidInput' } })
    const failed = await startRun({ client, world, input: plans })
    await expect(failed.result()).rejects.toMatchObject({ cause: { type: 'ExportFailed' } })
    await until(() => receiver.received.length > 0)
    expect(receiver.received.map(({ body }) => [body.event.kind, body.run.workflowId])).toEqual([
      ['failed', failed.workflowId],
    ])
    expect(receiver.received[0]?.body.report).toMatchObject({ verdict: 'failed' })
  })

  test('of an export that was published again, and of documents that were fetched', async () => {
    const receiver = await openChannel()
    const world = await createWorld({ counts: { plans: 5 } })
    await startTestWorker(world, { NOTIFY_URL: `all=${receiver.url}` })
    const client = await connectTemporal()
    const { taskQueue, workspace } = world
    const run = await startRun({ client, world, input: plans })
    await run.result()
    await client.workflow.execute<typeof publishRun>('publishRun', {
      workflowId: `${workspace}-again`,
      taskQueue,
      args: [{ run: run.workflowId, to: ['parquet'] }],
    })
    await client.workflow.execute<typeof fetchDocuments>('fetchDocuments', {
      workflowId: `${workspace}-fetch`,
      taskQueue,
      args: [{ documents: 'creditnotes', ids: ['999999'] }],
    })
    await until(() => receiver.received.length === 3)
    const told = receiver.received.map(({ body }) => [body.run.workflowId, body.event.kind, body.report])
    const ended = (id: string) => [id, 'ended', expect.objectContaining({ verdict: 'proven' })]
    expect(told).toEqual(
      expect.arrayContaining([
        ended(run.workflowId),
        ended(`${workspace}-again`),
        ended(`${workspace}-fetch`),
      ]),
    )
  })

  test('of deletes that were held back, although the export is proven', async () => {
    const receiver = await openChannel()
    const world = await createWorld({ counts: { plans: 40 } })
    await startTestWorker(world, { NOTIFY_URL: receiver.url, BILLING_READ_LAG_SECONDS: '0' })
    const client = await connectTemporal()
    const exportPlans = async () => {
      const run = await startRun({ client, world, input: { ...plans, to: ['duckdb'] } })
      return { run, report: await run.result() }
    }
    await exportPlans()
    for (const id of world.sandbox.control.ids({ resource: 'plans' }).slice(0, 20))
      world.sandbox.control.delete({ resource: 'plans', id })
    const { run, report } = await exportPlans()
    expect(report.verdict).toBe('proven')
    await until(() => receiver.received.length > 0)
    expect(receiver.received.map(({ body }) => [body.event.kind, body.run.workflowId])).toEqual([
      ['attention', run.workflowId],
    ])
    expect(receiver.received[0]?.body.text).toContain('deletes')
  })

  test('of parked rows, with the command that resolves the first', async () => {
    const receiver = await openChannel()
    const world = await createWorld({
      faults: [{ kind: 'reset', effect: 'done', on: 'POST /addons/', requests: [2] }],
    })
    await startTestWorker(world, { NOTIFY_URL: receiver.url })
    const file = await putFile(world, addonsCsv(3))
    const run = await startImport({
      client: await connectTemporal(),
      world,
      input: { kind: 'addons', file, ...quickImport },
    })
    const result = await run.result()
    expect(result.counts.parked).toBe(1)
    await until(() => receiver.received.length > 0)
    expect(receiver.kinds()).toEqual(['parked'])
    const row = result.rows.parked?.[0]
    expect(receiver.received[0]?.body.command).toContain(
      `npx connector run resolve ${run.workflowId} --rows ${row} `,
    )
    // No row of the file has left the data folder.
    expect(JSON.stringify(receiver.received)).not.toContain('Addon 2')
  })

  test('of a change that the service did twice, also when its run has ended', async () => {
    const receiver = await openChannel()
    const world = await createWorld({
      faults: [{ kind: 'latency', ms: 1_000, where: 'after', on: 'POST /addons/' }],
    })
    await startTestWorker(world, { NOTIFY_URL: receiver.url })
    using state = new DatabaseSync(join(world.dataDir, 'state.db'))
    // As another attempt does that has sent the row again and closed it.
    state.exec(`create trigger other after update of state on changes when new.state = 'sending' begin
      update changes set state = 'done', outcome = 'found', answer_id = 'other' where id = new.id; end`)
    const file = await putFile(world, addonsCsv(1))
    const client = await connectTemporal()
    const run = await startImport({ client, world, input: { kind: 'addons', file, ...quickImport } })
    await until(() => world.sandbox.control.ids({ resource: 'addons' }).length > 0)
    await run.terminate()
    await until(() => receiver.received.length > 0)
    const [id] = world.sandbox.control.ids({ resource: 'addons' })
    expect(receiver.received[0]?.body).toMatchObject({
      event: { kind: 'doubled', level: 'problems' },
      run: { workflowId: run.workflowId, type: 'importFile' },
      summary: `Row 2: the service has done it more than once: as other and as ${id}. Check both in the service and delete one.`,
      command: `npx connector run report ${run.workflowId}`,
    })
    expect(state.prepare('select state, outcome from changes').get()).toEqual({
      state: 'done',
      outcome: 'doubled',
    })
    expect(JSON.stringify(receiver.received)).not.toContain('Addon 1')
  })

  test('of what waits for an approval, once, and of a breaker that opened, once for all its trials', async () => {
    const receiver = await openChannel()
    const world = await createWorld({
      faults: [{ kind: 'refuse', status: 400, answer: { detail: 'No.' }, on: 'POST /retentions/' }],
    })
    await startTestWorker(world, { NOTIFY_URL: receiver.url })
    const file = await putFile(world, retentionsCsv(40))
    const input = { kind: 'retentions' as const, file, verifyAfter: 0.05, approval: true, canary: 0 }
    const run = await startImport({
      client: await connectTemporal(),
      world,
      input: { ...input, breakerWaits: [0.1, 0.1] },
    })
    await until(() => receiver.received.length > 0)
    const [approval] = receiver.received
    expect(approval?.body.event).toMatchObject({ kind: 'approval', level: 'decisions' })
    expect(approval?.body.command).toBe(`npx connector run approve ${run.workflowId} --why "..."`)
    await run.executeUpdate('approve', { args: [{ by: 'me', why: 'test' }] })
    // The breaker, and when its trials have failed too, the question whether to go on.
    await until(() => receiver.received.length === 3)
    expect(receiver.kinds().toSorted()).toEqual(['approval', 'approval', 'breaker'])
    const breaker = receiver.received.find(({ body }) => body.event.kind === 'breaker')
    expect(breaker?.body.command).toBe(`npx connector run show ${run.workflowId}`)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(3)
    await run.signal('stop')
    await run.result()
  })

  test('of more subscriptions that need attention than a dry run may find, and of fewer not', async () => {
    const receiver = await openChannel()
    const world = await createWorld({
      counts: { customers: 5, subscriptions: 20, plans: 3 },
      needsAttention: 0,
    })
    await startTestWorker(world, { NOTIFY_URL: receiver.url })
    const client = await connectTemporal()
    breakSome(world, { ids: idsOf(world).slice(0, 3), reason: 'gateway_issue' })
    const look = async (notifyAbove: number) =>
      client.workflow.execute<typeof recoverSubscriptions>('recoverSubscriptions', {
        workflowId: `${world.workspace}-above-${notifyAbove}`,
        taskQueue: world.taskQueue,
        args: [{ dryRun: true, notifyAbove }],
      })
    expect(await look(3)).toMatchObject({ verdict: 'dryRun' })
    const result = await look(2)
    await until(() => receiver.received.length > 0)
    expect(receiver.received.map(({ body }) => body)).toMatchObject([
      {
        event: { kind: 'attention', level: 'decisions' },
        summary: `3 subscriptions need attention, more than 2; ${result.summary}`,
        command: 'npx connector recover',
      },
    ])
  })

  test('of a run with the longest id that people type', async () => {
    const receiver = await openChannel()
    const name = `${process.pid} ${'é'.repeat(480)}`
    await endUnproven(receiver.url, { name })
    await until(() => receiver.received.length > 0)
    expect(receiver.received[0]?.body.run.workflowId).toBe(name)
    expect(receiver.received[0]?.body.command).toBe(`npx connector run report '${name}'`)
  })

  test('each as much as they asked for', async () => {
    const [quiet, usual, all] = [await openChannel(), await openChannel(), await openChannel()]
    const world = await createWorld({ counts: { plans: 5 } })
    await startTestWorker(world, { NOTIFY_URL: `problems=${quiet.url} ${usual.url}\n all=${all.url}` })
    const client = await connectTemporal()
    await (await startRun({ client, world, input: plans })).result()
    await until(() => all.received.length > 0)
    expect(all.received[0]?.body).toMatchObject({ event: { kind: 'ended' }, report: { verdict: 'proven' } })
    await client.workflow.getHandle(all.received[0]!.body.event.id).result()
    expect([quiet.received, usual.received]).toEqual([[], []])
  })
})

describe('a receiver', () => {
  test(
    'that fails at first is notified again with the same event id, and another channel only once',
    { tags: ['long'] },
    async () => {
      const flaky = await openChannel((request) => [503, 500][request - 1] ?? 200)
      const steady = await openChannel()
      await endUnproven(`${steady.url} ${flaky.url}`)
      await until(() => flaky.received.length === 3)
      expect(flaky.received.map(({ status }) => status)).toEqual([503, 500, 200])
      const ids = new Set([...flaky.received, ...steady.received].map(({ body }) => body.event.id))
      expect(ids.size).toBe(1)
      expect(flaky.received[2]?.body).toEqual(flaky.received[0]?.body)
      expect(steady.received).toHaveLength(1)
    },
  )

  test('that answers 400 is notified once, and only its delivery fails, with a message without its address', async () => {
    const refusing = await openChannel(() => 400)
    const { delivery } = await endUnproven(refusing.url)
    const host = new URL(refusing.url).host
    await expect(delivery.result()).rejects.toMatchObject({
      cause: {
        type: 'NotificationRefused',
        message: `Not delivered: ${host} answered 400: invalid_payload: Cannot POST .... Fix NOTIFY_URL.`,
      },
    })
    expect(refusing.received).toHaveLength(1)
    const history = await historyOf(delivery)
    expect(history).toContain('invalid_payload')
    expect(history).not.toContain('secret-of-the-hook')
  })

  test('that asks to be left alone for long keeps no other waiting, and is left alone', async () => {
    const busy = await openChannel(() => 429, { retryAfter: new Date(Date.now() + 3_600_000).toUTCString() })
    const flaky = await openChannel((request) => (request === 1 ? 503 : 200))
    await endUnproven(`${busy.url} ${flaky.url}`)
    await until(() => flaky.received.length === 2)
    expect(flaky.kinds()).toEqual(['unproven'])
    expect(busy.received).toHaveLength(1)
  })

  test('is notified although the one before it was removed from NOTIFY_URL, and no channel is notified twice', async () => {
    const told = await openChannel()
    const flaky = await openChannel((request) => (request === 1 ? 503 : 200), { retryAfter: '1' })
    const { world, worker, delivery } = await endUnproven(`${told.url} ${flaky.url}`)
    await until(() => flaky.received.length === 1)
    await worker.stop()
    const other = await openChannel()
    await startTestWorker(world, { NOTIFY_URL: `${flaky.url} ${told.url} ${other.url}` })
    await until(() => flaky.received.length === 2 && other.received.length === 1)
    expect(await delivery.result()).toBe('notified 3 of 3 channels')
    expect(told.received).toHaveLength(1)
  })

  test(
    'is notified within half a minute by another worker if the first was killed before the answer',
    { tags: ['long'] },
    async () => {
      let worker: ChildProcess | undefined
      const receiver = await openChannel((request) => {
        if (request === 1) worker?.kill('SIGKILL')
        return 503
      })
      const second = await openChannel()
      const world = await createWorld(unprovable)
      worker = await startWorkerProcess(world, { NOTIFY_URL: receiver.url })
      const killed = once(worker, 'exit')
      const client = await connectTemporal()
      await startRun({ client, world, input: plans })
      await killed
      const lostAt = Date.now()
      await startTestWorker(world, { NOTIFY_URL: second.url })
      await until(() => second.received.length > 0)
      expect(Date.now() - lostAt).toBeLessThan(30_000)
    },
  )

  test(
    'is notified of an event once, also when the run that sends it is reset',
    { tags: ['long'] },
    async () => {
      const receiver = await openChannel()
      const { client, run, runId } = await endUnproven(receiver.url)
      await until(() => receiver.received.length === 1)
      const { workflowId } = run
      const { events = [] } = (await run.fetchHistory()) ?? {}
      // The workflow task that told it is done once more.
      const telling = events?.find(
        ({ startChildWorkflowExecutionInitiatedEventAttributes: child }) =>
          child?.workflowType?.name === 'deliverNotification',
      )?.startChildWorkflowExecutionInitiatedEventAttributes
      const last = telling?.workflowTaskCompletedEventId
      const again = await client.workflowService.resetWorkflowExecution({
        namespace: 'default',
        workflowExecution: { workflowId, runId },
        reason: 'test',
        requestId: `${workflowId}-reset`,
        workflowTaskFinishEventId: last ?? null,
      })
      await client.workflow.getHandle(workflowId, again.runId).result()
      expect(receiver.received).toHaveLength(1)
    },
  )
})

test('a NOTIFY_URL that can not be meant is refused with a sentence, and is never shown', async () => {
  const world = await createWorld()
  const check = (NOTIFY_URL: string) => () =>
    startTestWorker(world, { NOTIFY_URL }).then(
      () => 'started',
      (error: unknown) => String(error),
    )
  for (const [url, says] of [
    ['hooks.example.com/secret', 'not a list of https addresses'],
    ['some=https://hooks.example.com/secret', 'not a list of https addresses'],
    ['http://hooks.example.com/secret', 'unencrypted'],
  ] as const) {
    const said = await check(url)()
    expect(said).toContain(says)
    expect(said).not.toContain('secret')
  }
})

test('a long summary is cut between two letters, not within one', () => {
  const notification: Notification = {
    id: 'run/failed/1',
    kind: 'failed',
    at: '2026-11-22T05:41:07.123Z',
    run: { workflowId: 'run', runId: '1', type: 'exportData' },
    summary: `${'x'.repeat(1_999)}😀 and more`,
  }
  const sender = { workspace: 'acc_1', mode: 'live' } as const
  const { text } = toBody({ notification, sender, ui: { url: undefined, namespace: 'default' } })
  expect(text).toContain('xxx')
  expect(text.isWellFormed()).toBe(true)
})
