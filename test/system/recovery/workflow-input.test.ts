import type { WorkflowHandle } from '@temporalio/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asked, connectTemporal, openTestWorker, openWorld, type World } from '../export/world.ts'
import { failureOf, type RecoveryHandle } from './world.ts'

let world: World
let worker: Awaited<ReturnType<typeof openTestWorker>>
let runs = 0

beforeAll(async () => {
  world = await openWorld({
    counts: { customers: 1, subscriptions: 3, plans: 1, retentions: 0, orders: 0 },
    needsAttention: 0,
  })
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
  return await client.workflow.start('recoverSubscriptions', { workflowId, taskQueue: world.taskQueue, args })
}

const yesterday = new Date(Date.now() - 48 * 3_600_000).toISOString().slice(0, 10)

test.each([
  ['a list', [['gateway_issue']], 'got a list', 'Its fields are reasons, maxPages'],
  ['a text', ['gateway_issue'], 'got a string', 'one object, such as {"reasons": ["gateway_issue"]}'],
  ['unknown fields', [{ reason: 'x', pages: 3 }], '"reason", "pages"', 'Its fields are reasons'],
  ['what one execution hands to the next', [{ onward: {} }], '"onward"', 'Its fields are'],
  ['maxPages 0', [{ maxPages: 0 }], 'maxPages: ', '>=1'],
  ['maxChanges 0', [{ maxChanges: 0 }], 'maxChanges: ', '>=1'],
  ['a date in the past', [{ nextBilling: yesterday }], `${yesterday} is in the past`, 'leave it out'],
  [
    'a date that does not exist',
    [{ nextBilling: '2027-02-30' }],
    'nextBilling: ',
    '2027-02-30 does not exist',
  ],
  ['a date written otherwise', [{ nextBilling: '30/12/2027' }], '"30/12/2027" is not a date', '2026-12-01'],
  [
    'misspelt reasons',
    [{ reasons: ['gatway_issue', 'x'] }],
    'did you mean gateway_issue?',
    'without_reference',
  ],
  ['no reasons', [{ reasons: [] }], 'reasons: ', '>=1'],
  ['a time that is none', [{ olderThan: '2 weeks' }], '"2 weeks" is not a duration', '"2h"'],
  ['a time without end', [{ approvalWait: '100000000d' }], '"100000000d" is longer than 366 days', '"2h"'],
  ['a text for a number', [{ maxPages: '5' }], 'maxPages: ', 'expected number'],
  [
    'another workspace',
    [{ identity: { workspace: 'acc_other', baseUrl: 'http://x', mode: 'live', store: 's' } }],
    'acc_other',
    'start a new run',
  ],
])('ends at once with a sentence for %s', async (_, args, names, tells) => {
  const before = asked(world)
  const run = await start(...args)
  const failure = await failureOf(run as RecoveryHandle)
  expect(failure?.message).toContain(names)
  expect(failure?.message).toContain(tells)
  expect(failure?.message).toMatch(/^[^\n]+[.?]$/)
  expect(asked(world)).toBe(before)
  expect((await run.fetchHistory()).events?.length).toBeLessThan(12)
})

test.each([
  ['nothing', []],
  ['null', [null]],
  ['{}', [{}]],
])('takes %s, and ends at once where all is well', async (_, args) => {
  const result = (await (await start(...args)).result()) as { summary: string; verdict: string }
  expect(result).toMatchObject({
    summary: 'nothing to resume; proven',
    verdict: 'proven',
  })
})

test('describes each button, as the Temporal UI shows it', async () => {
  const run = await start({})
  await run.result()
  const { definition } = await run.query<{
    definition: Record<
      'signalDefinitions' | 'updateDefinitions' | 'queryDefinitions',
      { name: string; description: string }[]
    >
  }>('__temporal_workflow_metadata')
  const all = [
    ...definition.signalDefinitions,
    ...definition.updateDefinitions,
    ...definition.queryDefinitions,
  ].filter(({ name }) => !name.startsWith('__'))
  expect(all.map(({ name }) => name).toSorted()).toEqual([
    'approve',
    'pause',
    'report',
    'resolve',
    'setLimits',
    'status',
    'stop',
    'unpause',
  ])
  expect(all.every(({ description }) => description.length > 20)).toBe(true)
})
