import type { WorkflowHandle } from '@temporalio/client'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asked, connectTemporal, openTestWorker, openWorld, type World } from '../export/world.ts'
import { putFile, retentionsCsv, timesOf, once } from './world.ts'

let world: World
let worker: Awaited<ReturnType<typeof openTestWorker>>
let runs = 0

beforeAll(async () => {
  world = await openWorld({ counts: { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 } })
  await putFile(world, retentionsCsv(3))
  await symlink('/etc/hostname', join(world.dataDir, 'inbox/link.csv'))
  worker = await openTestWorker(world)
})
afterAll(async () => {
  await worker.stop()
  await world.close()
})

async function start(...args: unknown[]): Promise<WorkflowHandle> {
  const client = await connectTemporal()
  runs += 1
  const workflowId = `typed by hand ${world.workspace} ${runs}`
  return await client.workflow.start('importFile', { workflowId, taskQueue: world.taskQueue, args })
}

const good = { kind: 'retentions', file: 'inbox/rows.csv' }

test.each([
  ['nothing', [], 'kind', 'Its fields are kind, file'],
  ['null', [null], 'kind', 'Its fields are'],
  ['a text', ['retentions'], 'expected object', 'Its fields are'],
  ['an unknown kind', [{ ...good, kind: 'retention' }], 'kind', '"retentions"'],
  ['an unknown field', [{ ...good, canaries: 3 }], 'canaries', 'Its fields are'],
  ['a text for a number', [{ ...good, canary: '3' }], 'canary', 'expected number'],
  ['a file that is not there', [{ ...good, file: 'inbox/none.csv' }], 'inbox/none.csv', 'data folder'],
  ['a file outside', [{ ...good, file: '../../etc/passwd' }], 'outside the data folder', 'connector import'],
  ['an absolute path outside', [{ ...good, file: '/etc/passwd' }], 'outside the data folder', 'connector'],
  [
    'a link that leads outside',
    [{ ...good, file: 'inbox/link.csv' }],
    'outside the data folder',
    'connector',
  ],
  [
    'an unknown locale',
    [{ ...good, locale: 'xx-nowhere-1' }],
    'The value of --locale is not a known locale',
    'es-CL',
  ],
  [
    'another workspace',
    [{ ...good, identity: { workspace: 'acc_other', baseUrl: 'http://x', mode: 'live', store: 's' } }],
    'acc_other',
    'start a new run',
  ],
])('ends at once with a sentence for %s', async (_, args, names, tells) => {
  const before = asked(world)
  const run = await start(...args)
  const error = await run.result().then(
    () => new Error('it did not fail'),
    (failure: Error) => failure.cause as Error,
  )
  expect(error.message).toContain(names)
  expect(error.message).toContain(tells)
  expect(error.message).toMatch(/^[^\n]+[.?]$/)
  expect(asked(world) - before).toBeLessThan(3)
  expect((await run.fetchHistory()).events?.length).toBeLessThan(12)
})

test('takes a file of the data folder, under an id that somebody types, twice', async () => {
  const run = await start(good)
  expect(await run.result()).toMatchObject({ run: run.workflowId, verdict: 'proven', counts: { done: 3 } })
  expect(timesOf(world, 'retentions', 3)).toEqual(once(3))
  // The same id and the same rows: the same run, which has nothing left to do. Other rows: a run of its own.
  const client = await connectTemporal()
  const again = (file: string) =>
    client.workflow.start('importFile', {
      workflowId: run.workflowId,
      taskQueue: world.taskQueue,
      args: [{ ...good, file }],
    })
  expect(await (await again(good.file)).result()).toMatchObject({ run: run.workflowId, counts: { done: 3 } })
  const file = await putFile(world, retentionsCsv(2, { from: 4 }), 'other.csv')
  expect(await (await again(file)).result()).toMatchObject({
    run: `${run.workflowId}.2`,
    counts: { done: 2 },
  })
  expect(timesOf(world, 'retentions', 5)).toEqual(once(5))
})

test('shows in its current details what is waited for, and describes each button', async () => {
  const file = await putFile(world, retentionsCsv(2, { from: 20 }), 'third.csv')
  const run = await start({ ...good, file, approval: true })
  const metadata = () =>
    run.query<{
      definition: Record<
        'signalDefinitions' | 'updateDefinitions' | 'queryDefinitions',
        { name: string; description: string }[]
      >
      currentDetails: string
    }>('__temporal_workflow_metadata')
  await expect
    .poll(async () => (await metadata()).currentDetails, { timeout: 10_000 })
    .toContain('waiting for a person')
  const { definition, currentDetails } = await metadata()
  expect(currentDetails).toContain(`**LIVE** ${world.workspace}`)
  expect(currentDetails.replaceAll('\u00a0', '')).toContain('| file (2 rows) | 2 | 3,000.20 | 4 | 42.00 |')
  const all = [...definition.signalDefinitions, ...definition.updateDefinitions]
  expect(all.map(({ name }) => name).toSorted()).toEqual([
    'approve',
    'pause',
    'resolve',
    'setLimits',
    'stop',
    'unpause',
  ])
  expect(
    [...all, ...definition.queryDefinitions.filter(({ name }) => !name.startsWith('__'))].every(
      ({ description }) => description.length > 20,
    ),
  ).toBe(true)
  await run.signal('stop')
  expect(await run.result()).toMatchObject({ counts: { staged: 2, done: 0 } })
})
