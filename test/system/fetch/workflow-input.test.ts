import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import { asked, connectTemporal, openTestWorker, openWorld, type World } from '../export/world.ts'
import { putFile } from './world.ts'

let world: World
let worker: RunningWorker

beforeAll(async () => {
  world = await openWorld({ counts: { customers: 1, creditnotes: 3 } })
  worker = await openTestWorker(world)
  await putFile(world, 'id;id\n501;501\n', 'twice.csv')
  await putFile(world, 'id\n501\n12,5\n12.5\n', 'decimal.csv')
})

afterAll(async () => {
  await worker.stop()
  await world.close()
})

let runs = 0
const fields = 'Its fields are documents, ids, file, column,'
const credit = { documents: 'creditnotes' }

describe('the input of a fetch, as the Temporal UI can send it', () => {
  test.each<[string, unknown[], string]>([
    ['nothing', [], fields],
    ['an array', [[]], fields],
    ['a text', ['501'], fields],
    ['unknown documents', [{ documents: 'invoices', ids: ['1'] }], '"creditnotes"'],
    ['an unknown field', [{ ...credit, id: '501' }], fields],
    ['neither ids nor a file', [credit], 'either ids or a file'],
    ['ids and a file', [{ ...credit, ids: ['1'], file: 'a.csv' }], 'either ids or a file'],
    ['no id at all', [{ ...credit, ids: [] }], 'ids: empty'],
    ['an empty id', [{ ...credit, ids: ['501', ' '] }], 'not valid; ids consist'],
    ['a way out of the path', [{ ...credit, ids: ['..'] }], '"..": not valid'],
    ['half an id', [{ ...credit, ids: [501.5] }], fields],
    ['a column without a file', [{ ...credit, ids: ['1'], column: 'id' }], 'only a file has columns'],
    ['a file outside the data folder', [{ ...credit, file: '../ids.csv' }], 'outside the data folder'],
    ['a file that is not there', [{ ...credit, file: 'ids.csv' }], 'There is no file ids.csv'],
    ['a file with two such columns', [{ ...credit, file: 'inbox/twice.csv' }], 'two columns id'],
    ['a cell that is no id', [{ ...credit, file: 'inbox/decimal.csv' }], 'row 3; row 4'],
    ['a rate of nothing', [{ ...credit, ids: ['501'], requestsPerSecond: 0 }], 'requestsPerSecond: '],
  ])('ends at once with a sentence for %s', async (_, args, says) => {
    const before = asked(world)
    const client = await connectTemporal()
    runs += 1
    const run = await client.workflow.start('fetchDocuments', {
      workflowId: `fetch-${world.workspace}-${runs}`,
      taskQueue: world.taskQueue,
      args,
    })
    const failure = await run.result().then(
      () => ({ type: 'none', message: 'it did not fail' }),
      (error: Error) => error.cause as Error & { type: string },
    )
    expect(failure.message).toContain(says)
    expect(failure.message).toMatch(/^[^\n]+[.?]$/)
    expect(failure.type).toMatch(/^(InvalidInput|InvalidFile)$/)
    expect(asked(world)).toBe(before)
    expect((await run.fetchHistory()).events?.length).toBeLessThan(12)
  })

  test('takes ids as numbers too', async () => {
    const client = await connectTemporal()
    runs += 1
    const report = await client.workflow.execute('fetchDocuments', {
      workflowId: `fetch-${world.workspace}-${runs}`,
      taskQueue: world.taskQueue,
      args: [{ ...credit, ids: [501, '502'] }],
    })
    expect(report).toMatchObject({ summary: '1 of 1 proven complete, 2 records' })
  })
})
