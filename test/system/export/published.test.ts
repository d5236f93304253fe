import { readdir, readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import { connectTemporal, createWorld, folderOf, rowsOf, runExport, startTestWorker } from './world.ts'

test(
  '`latest` follows every whole export, `latest-proven` only proven ones, and neither a part of a list, which has what matches, nor one for Excel',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { subscriptions: 300 } })
    await startTestWorker(world)
    const report = async (input: ExportInput = {}) =>
      runExport(world, { resources: ['subscriptions'], ...input })
    const run = async (input?: ExportInput) => basename(folderOf(await report(input), 'subscriptions'))
    const pointers = () =>
      Promise.all(
        ['latest', 'latest-proven'].map((name) =>
          readlink(join(world.dataDir, 'exports/subscriptions', name)),
        ),
      )
    const first = await run()
    expect(await pointers()).toEqual([first, first])
    const filtered = await report({ filters: { status: 'active' } })
    expect(filtered.verdict).toBe('proven')
    const statuses = (await rowsOf(filtered, 'subscriptions')).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set(['active']))
    await run({ maxPages: 2 })
    expect(await run({ forExcel: true })).toMatch(/-excel$/)
    // Only CSV has a form for Excel.
    expect(await run({ forExcel: true, to: ['parquet', 'csv'] })).not.toMatch(/-excel$/)
    expect(await pointers()).toEqual([first, first])
    world.sandbox.control.setFaults({ faults: [{ kind: 'ignoreOrdering' }] })
    const unproven = await run()
    expect(await pointers()).toEqual([unproven, first])
    world.sandbox.control.setFaults({ faults: [] })
    const last = await run()
    expect(await pointers()).toEqual([last, last])
  },
)

test('the report of a run is found by its name, whatever someone typed for it', async () => {
  const world = await createWorld({ counts: { customers: 20, plans: 3 } })
  await startTestWorker(world)
  const name = `../nightly / ${world.workspace}`
  const input: ExportInput = { resources: ['customers', 'plans'], to: ['csv', 'parquet'] }
  const report = await runExport(world, input, name)
  expect(report.run).toBe(name)
  const reports = (await readdir(join(world.dataDir, 'exports', 'reports'))).toSorted()
  expect(reports).toEqual([expect.stringMatching(/\.html$/), expect.stringMatching(/\.json$/)])
  const told = await callCommand(world, ['run', 'report', name, '--json'])
  expect(told).toMatchObject({ code: 0 })
  expect(JSON.parse(told.stdout)).toMatchObject({
    run: name,
    // Lists, however many destinations they have.
    summary: '2 of 2 lists proven complete, 23 records',
    exports: [
      { resource: 'customers' },
      { resource: 'customers' },
      { resource: 'plans' },
      { resource: 'plans' },
    ],
  })
})

test('an export of test-mode data lies apart from live data', async () => {
  const world = await createWorld({ testCounts: { plans: 7 } })
  await startTestWorker(world, { BILLING_TEST_MODE: 'true' })
  const client = await connectTemporal()
  const handle = await client.workflow.start('exportData', {
    workflowId: `export-${world.workspace}-test`,
    taskQueue: `${world.taskQueue}-test`,
    args: [{ resources: ['plans'] }],
  })
  const report = await handle.result()
  expect(folderOf(report, 'plans')).toContain(join(world.dataDir, 'exports', 'test', 'plans'))
  expect(await rowsOf(report, 'plans')).toHaveLength(7)
})
