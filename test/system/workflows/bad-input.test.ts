import { Client, type WorkflowHandle } from '@temporalio/client'
import type { PayloadConverter } from '@temporalio/common'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import { asked, connectTemporal, openTestWorker, openWorld, type World } from '../export/world.ts'
import { once, putFile, retentionsCsv, timesOf } from '../import/world.ts'

const counts = { customers: 5, subscriptions: 3, plans: 2, retentions: 2, orders: 0, creditnotes: 3 }
let world: World
let worker: RunningWorker

beforeAll(async () => {
  world = await openWorld({ counts, needsAttention: 0 })
  await putFile(world, retentionsCsv(3))
  await putFile(world, 'id;id\n501;501\n', 'twice.csv')
  await putFile(world, 'id\n501\n12,5\n12.5\n', 'decimal.csv')
  await symlink('/etc/hostname', join(world.dataDir, 'inbox/link.csv'))
  worker = await openTestWorker(world)
})

afterAll(async () => {
  await worker.stop()
  await world.close()
})

let runs = 0

function start(client: Client, workflow: string, args: unknown[], name?: string) {
  runs += 1
  const workflowId = name ?? `typed by hand ${world.workspace} ${runs}`
  return client.workflow.start(workflow, { workflowId, taskQueue: world.taskQueue, args })
}

const failureOf = (run: WorkflowHandle) =>
  run.result().then(
    () => expect.fail('the run did not fail'),
    (error: Error) => error.cause as Error & { type: string },
  )

const otherIdentity = { identity: { workspace: 'acc_other', baseUrl: 'http://x', mode: 'live', store: 's' } }
const yesterday = new Date(Date.now() - 48 * 3_600_000).toISOString().slice(0, 10)

/** What is wrong, the arguments, and what the sentence names. */
type Case = readonly [about: string, args: unknown[], ...names: string[]]

const exports: Case[] = [
  ['an unknown filter', [{ resources: ['plans'], filters: { colour: 'red' } }], 'colour', 'Its filters are'],
  ['an unknown column', [{ exclude: ['customers.emial'] }], 'customers.emial', 'customers.email'],
  ['a hash without a key', [{ hash: ['customers.email'] }], 'CONNECTOR_HASH_KEY', 'secret key'],
  ['a folder outside', [{ out: '../elsewhere' }], '../elsewhere', 'CONNECTOR_OUT_DIRS'],
  ['another workspace', [otherIdentity], 'acc_other', 'start a new run'],
]

const credit = { documents: 'creditnotes' }
const fetchFields = 'Its fields are documents, ids, file, idColumn,'
const fetches: Case[] = [
  ['nothing', [], fetchFields],
  ['neither ids nor a file', [credit], 'either ids or a file'],
  ['ids and a file', [{ ...credit, ids: ['1'], file: 'a.csv' }], 'either ids or a file'],
  ['no id at all', [{ ...credit, ids: [] }], 'ids: empty'],
  ['an empty id', [{ ...credit, ids: ['501', ' '] }], 'not valid; ids consist'],
  ['a way out of the path', [{ ...credit, ids: ['..'] }], '"..": not valid'],
  ['a column without a file', [{ ...credit, ids: ['1'], idColumn: 'id' }], 'only a file has columns'],
  ['a file outside the data folder', [{ ...credit, file: '../ids.csv' }], 'outside the data folder'],
  ['a file that is not there', [{ ...credit, file: 'ids.csv' }], 'There is no file ids.csv'],
  ['a file with two such columns', [{ ...credit, file: 'inbox/twice.csv' }], 'two columns id'],
  ['a cell that is not an id', [{ ...credit, file: 'inbox/decimal.csv' }], 'row 3; row 4'],
]

const good = { kind: 'retentions', file: 'inbox/rows.csv' }
const imports: Case[] = [
  ['nothing', [], 'kind', 'Its fields are kind, file'],
  ['null', [null], 'kind', 'Its fields are'],
  ['a file that is not there', [{ ...good, file: 'inbox/none.csv' }], 'inbox/none.csv', 'data folder'],
  [
    'a file outside',
    [{ ...good, file: '../../etc/passwd' }],
    'outside the data folder',
    'npx connector import',
  ],
  ['an absolute path outside', [{ ...good, file: '/etc/passwd' }], 'outside the data folder'],
  ['a link that leads outside', [{ ...good, file: 'inbox/link.csv' }], 'outside the data folder'],
  [
    'an unknown locale',
    [{ ...good, locale: 'xx-nowhere-1' }],
    'The value of --locale is not a known locale',
    'es-CL',
  ],
  ['another workspace', [{ ...good, ...otherIdentity }], 'acc_other', 'start a new run'],
]

const recoveries: Case[] = [
  ['what one execution hands to the next', [{ onward: {} }], '"onward"', 'Its fields are'],
  ['a date in the past', [{ nextBilling: yesterday }], `${yesterday} is in the past`, 'leave it out'],
  ['another workspace', [otherIdentity], 'acc_other', 'start a new run'],
]

const publishing = 'Publishing again takes'
const others: Case[] = [
  ['nothing', [], publishing],
  ['null', [null], publishing],
  ['a number for a run', [{ run: 7 }], publishing],
  ['an unknown destination', [{ run: 'export-nothing', to: ['csvs'] }], publishing],
]

const notices: Case[] = [
  ['nothing', [], 'deliverNotification is started by a run'],
  ['half a notice', [{ kind: 'failed' }], 'deliverNotification is started by a run'],
]

const table = {
  exportData: exports,
  fetchDocuments: fetches,
  importFile: imports,
  recoverSubscriptions: recoveries,
  publishRun: others,
  deliverNotification: notices,
}

const refusals =
  /^(InvalidInput|InvalidFile|InvalidMapping|FilterError|UnknownFieldError|FolderOutsideError|PrivacyRefusedError|WrongWorker)$/

describe.each(Object.entries(table))('bad input of %s, as the Temporal UI can send it', (workflow, cases) => {
  const named = cases.map(([about, args, ...names]) => ({ about, args, names }))
  test.each(named)('ends the run at once with one sentence: $about', async ({ args, names }) => {
    const before = asked(world)
    const run = await start(await connectTemporal(), workflow, args)
    const failure = await failureOf(run)
    for (const name of names) expect(failure.message).toContain(name)
    expect(failure.message).toMatch(/^[^\n]+[.?]$/)
    expect(failure.type).toMatch(refusals)
    // An import first asks whether its token is accepted.
    expect(asked(world) - before).toBeLessThanOrEqual(workflow === 'importFile' ? 1 : 0)
    // One activity, its failure, and the search attributes that say so: nothing was tried again.
    expect((await run.fetchHistory()).events?.length).toBeLessThanOrEqual(12)
  })
})

const bytes = (text: string) => new TextEncoder().encode(text)
const broken = { metadata: { encoding: bytes('json/plain') }, data: bytes('{"resources": ["plans"') }
const protobuf = {
  metadata: { encoding: bytes('json/protobuf'), messageType: bytes('a.B') },
  data: bytes('{}'),
}

test.each(['exportData', 'publishRun', 'importFile', 'fetchDocuments', 'watchSchedules'])(
  'an input that is not JSON ends a run of %s at once with a sentence',
  async (workflow) => {
    const { connection } = await connectTemporal()
    for (const payload of [broken, protobuf]) {
      // As the Temporal UI sends what somebody typed under another encoding.
      const client = new Client({ connection })
      const raw: PayloadConverter = { toPayload: () => payload, fromPayload: () => undefined as never }
      Object.assign(client.workflow.options.loadedDataConverter, { payloadConverter: raw })
      const run = await start(client, workflow, ['anything'])
      expect((await failureOf(run)).message).toBe(
        "The input can't be read as JSON: give one JSON object, with the encoding json/plain.",
      )
      expect((await run.fetchHistory()).events?.length).toBeLessThan(6)
    }
  },
)

test('an export of null exports all four lists', async () => {
  const run = await start(await connectTemporal(), 'exportData', [null])
  expect(await run.result()).toMatchObject({ summary: '4 of 4 lists proven complete, 12 records' })
})

test.each([[[]], [[{}]], [[null]]])('a recovery of %j ends at once where all is well', async (args) => {
  const run = await start(await connectTemporal(), 'recoverSubscriptions', args)
  expect(await run.result()).toMatchObject({ summary: 'nothing to resume; proven', verdict: 'proven' })
})

test('a fetch takes ids as numbers, too', async () => {
  const run = await start(await connectTemporal(), 'fetchDocuments', [{ ...credit, ids: [501, '502'] }])
  expect(await run.result()).toMatchObject({ summary: '1 of 1 proven complete, 2 records' })
})

test('an import takes a file of the data folder, under an id that somebody types, twice', async () => {
  const client = await connectTemporal()
  const run = await start(client, 'importFile', [good])
  const { workflowId } = run
  expect(await run.result()).toMatchObject({ run: workflowId, verdict: 'proven', counts: { done: 3 } })
  expect(timesOf(world, 'retentions', 3)).toEqual(once(3))
  // The same id and the same rows: the same run, which has nothing left to do. Other rows: a run of its own.
  const again = await start(client, 'importFile', [good], workflowId)
  expect(await again.result()).toMatchObject({ run: workflowId, counts: { done: 3 } })
  const file = await putFile(world, retentionsCsv(2, { from: 4 }), 'other.csv')
  const other = await start(client, 'importFile', [{ ...good, file }], workflowId)
  expect(await other.result()).toMatchObject({ run: `${workflowId}.2`, counts: { done: 2 } })
  expect(timesOf(world, 'retentions', 5)).toEqual(once(5))
})
