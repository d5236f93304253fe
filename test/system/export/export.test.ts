import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { listNames } from '../../../core/billing/resources/lists.ts'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { connectTemporal, createWorld, folderOf, rowsOf, startRun, startTestWorker } from './world.ts'

const idsIn = async (folder: string, resource: string) => {
  const text = await readFile(join(folder, `${resource}.csv`), 'utf8')
  return parse<{ id: string }>(text, { columns: true }).map(({ id }) => id)
}

describe('an export', () => {
  test(
    'of all lists is proven and whole while records come and go and requests fail',
    { tags: ['long'] },
    async () => {
      const perSecond = { deletes: 20, inserts: 20, updates: 20, lateCommits: 5, restores: 5 }
      const world = await createWorld({
        counts: { customers: 3000, subscriptions: 1200, plans: 60, retentions: 900 },
        drift: { customers: { perSecond }, subscriptions: { perSecond }, retentions: { perSecond } },
        faults: [
          { kind: 'reset', rate: 0.01 },
          { kind: 'error', rate: 0.01 },
          { kind: 'cutBody', rate: 0.01 },
        ],
      })
      await startTestWorker(world)
      const client = await connectTemporal()
      const mark = world.sandbox.control.mark()
      const handle = await startRun({ client, world })
      const report = await handle.result()
      world.sandbox.control.setDrift({ drift: {} })

      expect(report).toMatchObject({ verdict: 'proven', run: handle.workflowId })
      const all = `${listNames.length} of ${listNames.length} lists`
      expect(report.summary).toMatch(new RegExp(`^${all} proven complete`))
      for (const resource of listNames) {
        const folder = folderOf(report, resource)
        expect(await verifyExport(folder)).toMatchObject({ problems: [] })
        const ids = await idsIn(folder, resource)
        expect(new Set(ids).size).toBe(ids.length)
        const throughout = world.sandbox.control.ids({ resource, since: mark })
        expect(throughout.filter((id) => !ids.includes(String(id)))).toEqual([])
      }
    },
  )

  test('keeps its history to tens of events, without a row or the token in it', async () => {
    const world = await createWorld({ counts: { customers: 500 } })
    await startTestWorker(world)
    const client = await connectTemporal()
    const handle = await startRun({ client, world, input: { resources: ['customers'] } })
    const report = await handle.result()
    const [id] = await idsIn(folderOf(report, 'customers'), 'customers')
    const history = await handle.fetchHistory()
    const decoded = JSON.stringify(history).replace(/"data":"([^"]*)"/g, (_, data: string) =>
      Buffer.from(data, 'base64').toString(),
    )
    expect(history.events?.length).toBeLessThan(60)
    expect(decoded).toContain('customers')
    expect(decoded).not.toContain(world.sandbox.token)
    expect(decoded).not.toContain(id)
  })

  test('of test-mode data lies apart from live data', async () => {
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
    expect(await idsIn(folderOf(report, 'plans'), 'plans')).toHaveLength(7)
  })

  test('with a filter holds what matches, in a folder that says so, and moves no pointer', async () => {
    const world = await createWorld({ counts: { subscriptions: 400 } })
    await startTestWorker(world)
    const client = await connectTemporal()
    const input = { resources: ['subscriptions' as const], filters: { status: 'needs_attention' } }
    const report = await (await startRun({ client, world, input })).result()
    expect(report.verdict).toBe('proven')
    const folder = folderOf(report, 'subscriptions')
    const rows = parse(await readFile(join(folder, 'subscriptions.csv'), 'utf8'), { columns: true })
    expect(rows.length).toBeGreaterThan(0)
    expect((rows as { status: string }[]).every(({ status }) => status === 'needs_attention')).toBe(true)
    await expect(readFile(join(world.dataDir, 'exports/subscriptions/latest/manifest.json'))).rejects.toThrow(
      'ENOENT',
    )
  })
})

test('records of hidden statuses are published once though their ids are hashed', async () => {
  const hide = { kind: 'hide', statuses: ['cancelled'] } as const
  const world = await createWorld({ counts: { subscriptions: 400 }, faults: [hide] })
  await startTestWorker(world, { CONNECTOR_HASH_KEY: 'a key of sixteen or more' })
  const client = await connectTemporal()
  const input = { resources: ['subscriptions' as const], hash: ['subscriptions.id'] }
  const report = await (await startRun({ client, world, input })).result()
  expect(report.verdict).toBe('proven')
  const ids = (await rowsOf(report, 'subscriptions')).map(({ id }) => id)
  expect(new Set(ids).size).toBe(400)
  expect(ids).toHaveLength(400)
})
