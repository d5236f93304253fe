import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { createWorld, startTestWorker, type World } from '../export/world.ts'
import { type FullReport, toImportView } from '../../../core/imports/view.ts'
import { addonsCsv, once, retentionsCsv, timesOf } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 40, orders: 0 }
const soon = { BILLING_SETTLE_SECONDS: '0.1' }

async function openShop(refused: (number | string)[], field: string) {
  const world = await createWorld({ counts })
  const on = `POST /${field === 'number' ? 'retentions' : 'addons'}/`
  world.sandbox.control.setFaults({
    faults: refused.map((value) => ({
      kind: 'refuse' as const,
      answer: { [field]: ['Not this one.'] },
      on,
      body: { [field]: value },
    })),
  })
  await startTestWorker(world, soon)
  return world
}

async function importText(world: World, kind: string, text: string, ...words: string[]) {
  const file = join(world.dataDir, 'rows.csv')
  await writeFile(file, text)
  const command = ['import', kind, file, '--json', ...words]
  const { code, stdout, stderr } = await callCommand(world, command, { env: soon })
  return { code, stderr, report: JSON.parse(stdout) as FullReport }
}

const resultsOf = async ({ files }: FullReport) =>
  parse<Record<string, string>>(await readFile(files.results ?? '', 'utf8'), { columns: true })

test('one report proves a whole sheet after two corrections: rows that earlier runs did are done, with id and run', async () => {
  const world = await openShop([5, 6, 106], 'number')
  const sheet = retentionsCsv(6)
  const first = await importText(world, 'retentions', sheet)
  expect(first.report.counts).toMatchObject({ done: 4, rejected: 2 })
  const corrected = sheet.replace(',5,2026', ',105,2026').replace(',6,2026', ',106,2026')
  const second = await importText(world, 'retentions', corrected, '--done', 'skip')
  expect(second.report.counts).toMatchObject({ done: 5, rejected: 1, skipped: 0 })
  const last = corrected.replace(',106,2026', ',206,2026')
  const { code, report } = await importText(world, 'retentions', last, '--done', 'skip')
  expect({ code, report }).toMatchObject({
    code: 0,
    report: {
      verdict: 'proven',
      summary: '6 of 6 retentions done (5 by earlier runs); proven by audit',
      counts: { done: 6, rejected: 0, skipped: 0 },
      audit: { rows: 6, found: 6 },
      outcomes: { doneEarlier: 5, created: 1 },
      totals: { done: { changes: 6 }, notDone: { changes: 0 } },
    },
  })
  const rows = await resultsOf(report)
  expect(rows.map((row) => row['_status'])).toEqual(rows.map(() => 'done'))
  expect(rows.every((row) => /^\d+$/.test(row['_id'] ?? ''))).toBe(true)
  const runs = [...Array.from({ length: 4 }, () => first.report.run), second.report.run]
  expect(rows.map((row) => row['_error'])).toEqual([...runs.map((run) => `the run ${run} did it`), ''])
  expect(timesOf(world, 'retentions', 6)).toEqual(once(6))
})

test('a row that an earlier run did is not proven where the service has lost it, or has another value than the sheet', async () => {
  const world = await openShop([6], 'number')
  const sheet = retentionsCsv(6)
  const first = await importText(world, 'retentions', sheet)
  const [gone] = await resultsOf(first.report)
  world.sandbox.control.delete({ resource: 'retentions', id: Number(gone?.['_id']) })
  const corrected = sheet.replace(',6,2026', ',106,2026')
  const lost = await importText(world, 'retentions', corrected, '--done', 'skip')
  expect(lost).toMatchObject({
    code: 3,
    report: { verdict: 'unproven', audit: { rows: 6, found: 5, findings: { missing: 1 } } },
  })
  const changed = corrected.replace(',106,2026', ',206,2026').replace(',2.50,', ',99.50,')
  const refused = await importText(world, 'retentions', changed)
  expect(refused).toMatchObject({
    code: 2,
    report: {
      error: {
        message: expect.stringContaining(
          `by the run ${first.report.run} (with other values in row 3). To send`,
        ),
      },
    },
  })
  // It has sent nothing, so there is nothing to resume.
  const again = await importText(world, 'retentions', changed)
  expect(again.stderr).not.toContain('unfinished')
  expect(again.report).toEqual(refused.report)
  const dry = await importText(world, 'retentions', changed, '--done', 'skip', '--dry-run')
  expect(dry.report.summary).toBe(
    'dry run, nothing was sent: 6 valid and 0 invalid of 6 retentions; 5 would be skipped',
  )
  const { report } = await importText(world, 'retentions', changed, '--done', 'skip')
  expect(report.reasons).toContain('1 done by an earlier run with other values than this file has')
  expect(toImportView(report).problems).toContainEqual({
    text: 'results.csv says which row differs, and how.',
  })
  expect((await resultsOf(report))[1]).toMatchObject({
    _status: 'skipped',
    _error: `the run ${first.report.run} did it: total was 2.50 and is 99.50 here`,
  })
})

test('rows without a list in the service that earlier runs did are done by their answers', async () => {
  const world = await openShop(['Addon 4'], 'name')
  const sheet = addonsCsv(4)
  const first = await importText(world, 'addons', sheet)
  expect(first.report.counts).toMatchObject({ done: 3, rejected: 1 })
  const { code, report } = await importText(
    world,
    'addons',
    sheet.replace('Addon 4', 'Addon 5'),
    '--done',
    'skip',
  )
  expect({ code, report }).toMatchObject({
    code: 0,
    report: { summary: '4 of 4 addons done (3 by earlier runs); proven by answer', counts: { done: 4 } },
  })
  expect(timesOf(world, 'addons', 5)).toEqual([1, 1, 1, 0, 1])
})

test('an update that an earlier run did is sent again if a later one for its record may have been done, although a person dropped that', async () => {
  const world = await createWorld({ counts: { ...counts, customers: 8 } })
  await startTestWorker(world, soon)
  const contacts = () =>
    [...world.sandbox.control.records({ resource: 'customers' })].flatMap(
      (text) => (JSON.parse(text) as { contacts: { id: string; name: string }[] }).contacts,
    )
  const [one, two] = contacts()
  const update = (...rows: string[]) =>
    importText(world, 'update-contacts', ['id,name', ...rows, ''].join('\n'), '--done', 'skip')
  await update(`${one?.id},First`)
  world.sandbox.control.setFaults({
    faults: [{ kind: 'reset', effect: 'done', on: 'PATCH /contacts/{id}/' }],
  })
  const { report: other } = await update(`${one?.id},Other`)
  expect(other.outcomes).toEqual({ sentTooOften: 1 })
  world.sandbox.control.setFaults({ faults: [] })
  const drop = ['run', 'resolve', other.run, '--rows', '2', '--drop', '--why', 'the name was wrong']
  await callCommand(world, drop, { env: soon })
  const { report } = await update(`${one?.id},First`, `${two?.id},Second`)
  expect(report).toMatchObject({ verdict: 'proven', outcomes: { updated: 2 } })
  expect(
    contacts()
      .slice(0, 2)
      .map(({ name }) => name),
  ).toEqual(['First', 'Second'])
})
