import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ImportPlan } from '../../core/imports/input.ts'
import type { RecoveryPlan } from '../../core/recoveries/input.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import { createSandbox } from '../../sandbox/sandbox.ts'
import { addonsCsv, retentionsCsv } from '../system/import/world.ts'
import { newFolder, openSteps, toOpen, openRows, giveUpUpdates } from './steps.ts'

test('the report of a dry run names the rows that are invalid, and why, but not what stands in them', async () => {
  const steps = await openSteps()
  const csv = retentionsCsv(3).replace('2026-03-01,3.50', 'tomorrow,3.50')
  const plan = await openRows(steps, { dryRun: true }, undefined, csv)
  await steps.stage(plan)
  await steps.close(plan, { how: 'dryRun' })
  const report = await readFile(join(steps.dataDir, plan.folder, 'report.json'), 'utf8')
  expect(JSON.parse(report)).toMatchObject({
    first: [{ row: 4, state: 'rejected', message: expect.stringContaining('is not a date') }],
  })
  // Both are passed on.
  const page = await readFile(join(steps.dataDir, plan.folder, 'report.html'), 'utf8')
  expect(page).toContain('is not a date')
  expect(report + page).not.toContain('tomorrow')
})

test('a header that may be somebody’s data is in the report of the totals, and not in what Temporal keeps', async () => {
  const steps = await openSteps()
  const email = 'juan.soto@ejemplo.cl'
  const csv = addonsCsv(3).replace('amount', email)
  await mkdir(join(steps.dataDir, 'inbox'))
  const mapping = 'inbox/mapping.json'
  await writeFile(join(steps.dataDir, mapping), JSON.stringify({ columns: { [email]: 'amount' } }))
  const plan = await openRows(steps, { kind: 'addons', mapping, dryRun: true }, undefined, csv)
  await steps.stage(plan)
  const kept = await steps.close(plan, { how: 'dryRun', giveUp: false })
  expect(await readFile(join(steps.dataDir, plan.folder, 'report.html'), 'utf8')).toContain(email)
  expect(JSON.stringify(kept)).toMatch(/6\.75/)
  expect(JSON.stringify(kept)).not.toContain(email)
})

test('what a run leaves for people is in the files that workers share, with the check, the findings and the sheet of a dry run', async () => {
  const store = createFolderStore(await newFolder())
  await store.create('inbox/rows.csv', retentionsCsv(2))
  const counts = { customers: 2, subscriptions: 2, plans: 1, retentions: 0, orders: 0 }
  const sandbox = await createSandbox({ counts, needsAttention: 1 })
  const { start, stage, send, prove, close } = await openSteps({ files: store, sandbox })
  const filesOf = async ({ folder }: ImportPlan | RecoveryPlan) =>
    (await store.list(folder)).map(({ path }) => path.slice(folder.length + 1))
  const input = { kind: 'retentions', file: 'inbox/rows.csv', canary: 0 }
  const plan = (await start('openRun', toOpen(input)).result) as ImportPlan
  await stage(plan)
  await send(plan)
  const [id = ''] = sandbox.control.ids({ resource: 'retentions' })
  sandbox.control.delete({ resource: 'retentions', id })
  await prove(plan)
  await close(plan, { how: 'finished' })
  expect(await filesOf(plan)).toEqual(
    expect.arrayContaining(['check.json', 'findings.jsonl', 'report.html', 'report.json', 'results.csv']),
  )
  const request = { job: 'recovery', input: { dryRun: true }, firstRunId: 'r1' }
  const recovery = (await start('openRun', request, { workflowId: 'recovery-1' }).result) as RecoveryPlan
  await stage(recovery)
  expect(await filesOf(recovery)).toEqual(['recovery.csv'])
})

test('the next step after a failed canary has what the service said of a row that failed, not of one that is unknown, and Temporal keeps neither', async () => {
  const { next, kept } = await giveUpUpdates({ why: 'all rows of the canary failed', canary: true })
  expect(next).toEqual([expect.stringMatching(/^the rows that went first all failed \(.*No\./)])
  expect(JSON.stringify(kept)).toContain('the rows that went first all failed: correct')
  expect(JSON.stringify(kept)).not.toContain('No.')
})
