import type { WorkflowHandle } from '@temporalio/client'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ImportInput } from '../../../core/imports/input.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import type { ImportProgress } from '../../../workflows/write-run/progress.ts'
import type { importFile } from '../../../workflows/import-file.ts'
import { resolveInRun } from '../../../scripts/runs/update-run.ts'
import { createTerminal } from '../../../scripts/terminal/terminal.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import { failureOf } from '../recovery/world.ts'
import {
  addonsCsv,
  once,
  ordersCsv,
  putFile,
  quick,
  retentionsCsv,
  sheetOf,
  startImport,
  timesOf,
} from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 3 }
type Handle = WorkflowHandle<typeof importFile>

async function begin(options: { input?: Partial<ImportInput>; rows: string; sandbox?: SandboxOptions }) {
  const world = await createWorld({ counts, ...options.sandbox })
  await startTestWorker(world)
  const client = await connectTemporal()
  const file = await putFile(world, options.rows)
  const start = (more: Partial<ImportInput> = {}, name?: string) =>
    startImport({
      client,
      world,
      input: { kind: 'retentions', file, ...quick, ...options.input, ...more },
      ...(name !== undefined && { name }),
    })
  return { world, client, start, run: await start() }
}

const status = (run: Handle) => run.query<ImportProgress>('status')
const posts = (world: World) =>
  world.sandbox.control.requests().filter(({ method }) => method !== 'GET').length
const waits = (run: Handle, question: string) =>
  until(async () => (await status(run)).waitingFor?.question === question)
const person = { by: 'Ana', why: 'the totals are those of the sheet' }
/** Resolves a row as `run resolve` does. */
const resolve = ({ world, run, input }: { world: World; run: Handle; input: object }) =>
  resolveInRun({
    settings: readSettings({ env: world.env, cwd: world.dataDir }),
    terminal: createTerminal({ json: true, debug: false }),
    run: run.workflowId,
    input: { ...input, ...person },
  })

describe('an import that waits for a person', () => {
  test('sends nothing before the approval, whose who and why are in the report', async () => {
    const { world, run } = await begin({ rows: retentionsCsv(5), input: { approval: true } })
    await waits(run, 'approval')
    expect(posts(world)).toBe(0)
    await expect(run.executeUpdate('approve', { args: [{ by: 'Ana' }] })).rejects.toThrow('Update failed')
    // The run has its own copy: what becomes of the file meanwhile is nothing to it.
    await putFile(world, retentionsCsv(5, { from: 100 }))
    await run.executeUpdate('approve', { args: [person] })
    const result = await run.result()
    expect(result).toMatchObject({ verdict: 'proven', counts: { done: 5 } })
    expect((await sheetOf(result, 'results')).map(({ number }) => number)).toEqual(['1', '2', '3', '4', '5'])
    expect(JSON.parse(await readFile(result.files.report ?? '', 'utf8'))).toMatchObject({
      decisions: [{ about: 'approval', ...person }],
      totals: { file: { rows: 5, sums: { total: '17.50' } } },
    })
  })

  test('ends cleanly where nobody comes, and asks again the next time', async () => {
    const { world, run, start } = await begin({
      rows: retentionsCsv(5),
      input: { approval: true, approvalWait: 1 },
    })
    expect(await run.result()).toMatchObject({
      ended: { how: 'stopped', why: 'nobody approved in time; the same import asks again' },
      counts: { staged: 5, done: 0 },
    })
    expect(posts(world)).toBe(0)
    const again = await start({ approvalWait: 60 }, run.workflowId)
    await waits(again, 'approval')
    await again.executeUpdate('approve', { args: [person] })
    expect(await again.result()).toMatchObject({ verdict: 'proven', counts: { done: 5 } })
  })

  test('deletes only after their number was typed', async () => {
    const world = await createWorld({ counts })
    await startTestWorker(world)
    const ids = world.sandbox.control.ids({ resource: 'orders' })
    const file = await putFile(world, ordersCsv(ids))
    const client = await connectTemporal()
    const run = await startImport({ client, world, input: { kind: 'delete-orders', file, ...quick } })
    await waits(run, 'approval')
    const wrong = run.executeUpdate('approve', { args: [{ ...person, count: 2 }] })
    await expect(wrong).rejects.toMatchObject({ cause: { message: expect.stringContaining('"count": 3') } })
    expect(world.sandbox.control.ids({ resource: 'orders' })).toHaveLength(3)
    await run.executeUpdate('approve', { args: [{ ...person, count: 3 }] })
    expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 3 } })
    expect(world.sandbox.control.ids({ resource: 'orders' })).toEqual([])
  })
})

describe('the brakes of an import', () => {
  const refuseAll = {
    faults: [{ kind: 'refuse', answer: { number: ['No.'] }, on: 'POST /retentions/' }],
  } as const

  test('end the run with the rest not tried when every trial failed and nobody is there', async () => {
    const { world, run } = await begin({
      rows: retentionsCsv(60),
      input: { canary: 0, maxFailureShare: 0.5, breakerWaits: [0.1, 0.1] },
      sandbox: refuseAll,
    })
    const result = await run.result()
    expect(result.counts.notTried).toBeGreaterThan(40)
    expect(result.counts.staged).toBe(0)
    expect(posts(world)).toBeLessThan(20)
  })
})

describe('what is parked', () => {
  const lost = {
    faults: [{ kind: 'reset', effect: 'none', on: 'POST /addons/', requests: [2, 3, 4] }],
  } as const

  test(
    'is resolved by a person, also after the run has ended and corrected, and the report keeps ids, times, names and reasons',
    { tags: ['long'] },
    async () => {
      const { world, client, run } = await begin({
        rows: addonsCsv(8),
        input: { kind: 'addons', concurrency: 1 },
        sandbox: lost,
      })
      const result = await run.result()
      expect(result).toMatchObject({
        verdict: 'unproven',
        counts: { done: 5, parked: 3 },
        rows: { parked: [3, 4, 5] },
      })
      const page = await run.query('report', { outcome: 'parked' })
      expect(page).toMatchObject({ outcome: 'parked', count: 3, rows: [3, 4, 5] })

      for (const said of [
        { row: 3, absent: true },
        { row: 4, exists: 'add_77' },
        { row: 5, drop: true },
        { row: 4, exists: 'add_78' },
      ])
        await resolve({ world, run, input: said })
      await expect(resolve({ world, run, input: { row: 2, drop: true } })).rejects.toThrow('row 2 of')
      await client.workflow.getHandle(result.run).result()
      const resolved = JSON.parse(await readFile(result.files.report ?? '', 'utf8')) as object
      expect(resolved).toMatchObject({
        counts: { done: 7, parked: 0, skipped: 1 },
        decisions: [
          { about: 'row', row: 3, absent: true, ...person },
          { about: 'row', row: 4, exists: 'add_77', confirmed: false, at: expect.any(String), ...person },
          { about: 'row', row: 5, drop: true, ...person },
          { about: 'row', row: 4, exists: 'add_78', confirmed: false, ...person },
        ],
      })
      expect(await readFile(result.files.results ?? '', 'utf8')).toContain('add_78')
      expect(timesOf(world, 'addons', 3)).toEqual([1, 1, 0])
    },
  )
})

test.for([
  ['dropped', { row: 2, drop: true }, 0],
  ['sent again, although one beside it is not parked,', { rows: [2, 61], absent: true }, 1],
] as const)(
  'a row of a stopped import is %s without what the stop left unsent, and the same import sends that',
  { tags: ['long'] },
  async ([, decision, times]) => {
    const { world, client, run, start } = await begin({
      rows: addonsCsv(60),
      // The canary is looked up before the rest is sent.
      input: { kind: 'addons', concurrency: 1 },
      sandbox: {
        faults: [
          { kind: 'reset', effect: 'none', on: 'POST /addons/', requests: [1] },
          { kind: 'latency', ms: 60 },
        ],
      },
    })
    await until(() => posts(world) > 10)
    await run.signal('stop')
    const stopped = await run.result()
    expect(stopped).toMatchObject({ ended: { how: 'stopped' }, counts: { parked: 1, unknown: 0 } })
    const { staged } = stopped.counts
    expect(staged).toBeGreaterThan(20)

    const before = posts(world)
    const refusal = await resolve({ world, run, input: decision }).then(
      () => '',
      (error: Error) => error.message,
    )
    expect(refusal.includes('row 61 of')).toBe('rows' in decision)
    const handle = client.workflow.getHandle<typeof importFile>(run.workflowId)
    const resolved = await handle.result()
    expect(resolved).toMatchObject({
      verdict: 'unproven',
      ended: { how: 'stopped' },
      counts: { staged, parked: 0, done: stopped.counts.done + times },
    })
    expect(posts(world) - before).toBe(times)
    const { events } = await handle.fetchHistory()
    const steps = events?.map((event) => event.activityTaskScheduledEventAttributes?.activityType?.name)
    expect(steps?.filter((name) => name === 'sendRun')).toHaveLength(1)

    world.sandbox.control.setFaults({ faults: [] })
    const again = await (await start({}, run.workflowId)).result()
    expect(again.counts).toMatchObject({ staged: 0, done: 59 + times })
    expect(timesOf(world, 'addons', 60)).toEqual([times, ...once(59)])
  },
)

test('a row is sent again, although more rows have failed than the import allowed', async () => {
  const { world, client, run } = await begin({
    rows: addonsCsv(6),
    input: { kind: 'addons', concurrency: 6, canary: 0, maxFailures: 1 },
    sandbox: {
      faults: [
        { kind: 'reset', effect: 'none', on: 'POST /addons/' },
        { kind: 'latency', ms: 200 },
      ],
    },
  })
  const { rows, summary } = await run.result()
  expect(rows.parked?.length).toBeGreaterThan(2)
  expect(summary).toContain('more than 1 change failed')
  world.sandbox.control.setFaults({ faults: [] })
  await resolve({ world, run, input: { row: rows.parked?.[0], absent: true } })
  const resolved = await client.workflow.getHandle<typeof importFile>(run.workflowId).result()
  expect(resolved.counts).toMatchObject({ done: 1, staged: 0 })
  expect(timesOf(world, 'addons', 6).filter((times) => times > 0)).toEqual([1])
})

test.for([
  ['of a dry run', { dryRun: true }, 'was a dry run'],
  ['of an import whose rows were not as many as expected', { expectRows: 9 }, 'has no row 2'],
] as const)('a row %s is not resolved, and nothing is sent for it', async ([, input, why]) => {
  const { world, client, run } = await begin({ rows: addonsCsv(8), input: { kind: 'addons', ...input } })
  await run.result().catch(() => undefined)
  await expect(resolve({ world, run, input: { row: 2, drop: true } })).rejects.toThrow(why)
  await client.workflow
    .getHandle(run.workflowId)
    .result()
    .catch(() => undefined)
  expect(posts(world)).toBe(0)
})

describe('a file that was imported before', () => {
  test('is refused with what was done, and --done skip sends the others', { tags: ['long'] }, async () => {
    const { world, start, run } = await begin({ rows: retentionsCsv(12) })
    await run.result()
    await writeFile(join(world.dataDir, 'inbox/more.csv'), retentionsCsv(15))
    const more = { file: 'inbox/more.csv' }
    expect(await failureOf(await start(more))).toMatchObject({
      type: 'RowsTaken',
      message: `12 of 15 rows were done by the run ${run.workflowId}. To send the other 3, add --done skip.`,
    })
    const rest = await (await start({ ...more, done: 'skip' })).result()
    expect(rest).toMatchObject({ verdict: 'proven', counts: { done: 15, skipped: 0 } })
    expect(timesOf(world, 'retentions', 15)).toEqual(once(15))
    expect(await failureOf(await start(more))).toMatchObject({
      message: `12 of 15 rows were done by the run ${run.workflowId}. All 15 are done; none is left to send.`,
    })
    const again = await (await start({ ...more, sendAgain: [3, 4] })).result()
    expect(again.counts).toMatchObject({ done: 2 })
    expect(timesOf(world, 'retentions', 4)).toEqual([1, 2, 2, 1])
  })

  test('and stopped before the end leaves its unsent rows to a fixed file, while a run in progress keeps them', async () => {
    const { world, start, run } = await begin({
      rows: retentionsCsv(30),
      input: { confirmCanary: true },
    })
    await waits(run, 'canary')
    // The same rows with another total, but for the three that were sent.
    const sent = [...world.sandbox.control.records({ resource: 'retentions' })].map(
      (text) => (JSON.parse(text) as { number: number }).number,
    )
    const fixed = retentionsCsv(30).replaceAll(
      /^(sup_\d,\d,(\d+),2026-03-01),\d+\.50/gm,
      (row, start, number) => (sent.includes(Number(number)) ? row : `${start},9.75`),
    )
    await writeFile(join(world.dataDir, 'inbox/fixed.csv'), fixed)
    const rest = { file: 'inbox/fixed.csv', done: 'skip', confirmCanary: false } as const
    const early = await failureOf(await start(rest))
    expect(early).toMatchObject({ type: 'RowsTaken', message: expect.stringMatching(/^27 of 30 rows/) })
    await run.signal('stop')
    await run.result()
    expect(await (await start(rest)).result()).toMatchObject({
      verdict: 'proven',
      counts: { done: 30, skipped: 0 },
    })
    expect(timesOf(world, 'retentions', 30)).toEqual(once(30))
    const again = await (await start({}, run.workflowId)).result()
    expect(again).toMatchObject({ counts: { done: 3, skipped: 27 }, outcomes: { takenOver: 27 } })
    expect(timesOf(world, 'retentions', 30)).toEqual(once(30))
  })
})

describe('a dry run', () => {
  test('and a real one find the same problems, and nothing of such a file is sent', async () => {
    const rows = retentionsCsv(9).replace('2026-03-01', '2026-13-01')
    const { world, run, start } = await begin({ rows })
    expect(await failureOf(run)).toMatchObject({
      type: 'InvalidFile',
      message: expect.stringContaining('row 2, date'),
    })
    const dry = await (await start({ dryRun: true })).result()
    expect(dry).toMatchObject({
      verdict: 'dryRun',
      summary: expect.stringContaining('8 valid and 1 invalid'),
    })
    expect(posts(world)).toBe(0)
    const skipped = await (await start({ onInvalid: 'skip' })).result()
    expect(skipped).toMatchObject({ verdict: 'proven', counts: { done: 8, rejected: 1 } })
    expect(await sheetOf(skipped, 'rejected')).toHaveLength(1)
  })
})

test('in test mode nothing is written before a read has shown that the header is honoured', async () => {
  const world = await createWorld({ counts, honoursTestMode: false })
  await startTestWorker(world, { BILLING_TEST_MODE: 'true' })
  const client = await connectTemporal()
  const file = await putFile(world, retentionsCsv(3))
  const inTest = { ...world, taskQueue: `${world.taskQueue}-test` }
  const run = await startImport({ client, world: inTest, input: { kind: 'retentions', file, ...quick } })
  expect(await failureOf(run)).toMatchObject({
    type: 'ImportFailed',
    message: expect.stringContaining('nothing was written'),
  })
  expect(posts(world)).toBe(0)
})
