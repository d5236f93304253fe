import type { Client, WorkflowHandle } from '@temporalio/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import { asked, connectTemporal, openTestWorker, openWorld, type World } from './world.ts'

const counts = { customers: 5, subscriptions: 3, plans: 2, retentions: 2 }
let world: World
let worker: RunningWorker

beforeAll(async () => {
  world = await openWorld({ counts })
  worker = await openTestWorker(world)
})

afterAll(async () => {
  await worker.stop()
  await world.close()
})

let runs = 0

function start(client: Client, workflow: string, ...args: unknown[]): Promise<WorkflowHandle> {
  runs += 1
  const workflowId = `${workflow}-${world.workspace}-${runs}`
  return client.workflow.start(workflow, { workflowId, taskQueue: world.taskQueue, args })
}

/** How a run failed: its own first words, which are what the Temporal UI shows. */
async function failureOf(run: WorkflowHandle): Promise<{ type: unknown; message: string }> {
  const error = await run.result().then(
    () => new Error('the run did not fail'),
    (error: Error) => error.cause as Error & { type?: unknown },
  )
  return { type: 'type' in error ? error.type : undefined, message: error.message }
}

const fields = 'Its fields are resources, to,'

describe('the input of an export, as the Temporal UI can send it', () => {
  test.each([
    ['nothing', []],
    ['{}', [{}]],
    ['null', [null]],
  ])('exports all four lists for %s', async (_, args) => {
    const run = await start(await connectTemporal(), 'exportData', ...args)
    expect(await run.result()).toMatchObject({ summary: '4 of 4 proven complete, 12 records' })
  })

  test.each([
    ['an array', [], 'expected object, received array', fields],
    ['a text', 'customers', 'expected object, received string', fields],
    ['a number', 7, 'expected object, received number', fields],
    ['an unknown field', { resorces: ['plans'] }, 'resorces', fields],
    ['an unknown resource', { resources: ['customer'] }, 'resources.0', '"subscriptions"'],
    ['a text for a list', { resources: 'customers' }, 'resources: ', 'expected array'],
    ['no resource at all', { resources: [] }, 'resources: ', fields],
    ['an unknown destination', { to: ['csvs'] }, 'to.0', '"csv"'],
    ['a text for a number', { maxPages: '4' }, 'maxPages: ', 'expected number'],
    ['a rate of nothing', { requestsPerSecond: 0 }, 'requestsPerSecond: ', fields],
    ['a filter that is no text', { filters: { status: 1 } }, 'filters.status: ', fields],
    ['an unknown filter', { resources: ['plans'], filters: { colour: 'red' } }, 'colour', 'Its filters are'],
    ['an unknown column', { exclude: ['customers.emial'] }, 'customers.emial', 'customers.email'],
    ['a hash without a key', { hash: ['customers.email'] }, 'CONNECTOR_HASH_KEY', 'secret key'],
    ['a folder outside', { out: '../elsewhere' }, '../elsewhere', 'CONNECTOR_OUT_DIRS'],
    [
      'another workspace',
      { identity: { workspace: 'acc_other', baseUrl: 'http://x', mode: 'live', store: 's' } },
      'acc_other',
      'start a new run',
    ],
  ])('ends at once with a sentence for %s', async (_, input, names, tells) => {
    const before = asked(world)
    const run = await start(await connectTemporal(), 'exportData', input)
    const { type, message } = await failureOf(run)
    expect(message).toContain(names)
    expect(message).toContain(tells)
    expect(message).toMatch(/^[^\n]+[.?]$/)
    expect(type).toMatch(
      /^(InvalidInput|FilterError|UnknownFieldError|FolderOutsideError|PrivacyRefusedError|WrongWorker)$/,
    )
    expect(asked(world)).toBe(before)
    const { events } = await run.fetchHistory()
    // One workflow task, one activity, its failure: nothing was tried again.
    expect(events?.length).toBeLessThan(12)
  })

  test.each([[[]], [[{ kind: 'failed' }]]])(
    'ends at once with a sentence where a notice is started by hand with %j',
    async (args) => {
      const run = await start(await connectTemporal(), 'deliverNotification', ...args)
      expect((await failureOf(run)).message).toMatch(/^deliverNotification is started by a run/)
    },
  )

  test.each([[[]], [[null]], [[{ run: 7 }]], [[{ run: 'export-nothing', to: ['csvs'] }]]])(
    'ends at once with a sentence where what is to be published again is %j',
    async (args) => {
      const run = await start(await connectTemporal(), 'publishRun', ...args)
      const { type, message } = await failureOf(run)
      expect({ type, message }).toEqual({
        type: 'InvalidInput',
        message: expect.stringMatching(/^Publishing again takes .*\.$/),
      })
    },
  )
})
