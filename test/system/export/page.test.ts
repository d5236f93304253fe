import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { filesOf, type Manifest } from '../../../core/destinations/manifest.ts'
import { isPublished } from '../../../core/exports/report.ts'
import { connectTemporal, createWorld, historyOf, startRun, startTestWorker } from './world.ts'

/** Sums without a currency, and by currency. */
const resources = ['customers', 'plans'] as const

/** The rows of a part of a page, each with its cells side by side. */
const rowsOf = (part: string) =>
  Array.from(part.matchAll(/<tr>(.*?)<\/tr>/gs), ([, row = '']) =>
    Array.from(row.matchAll(/<t[dh].*?>(.*?)<\/t[dh]>/gs), ([, cell = '']) =>
      cell
        .replaceAll(/<[^>]*>/g, '')
        .trim()
        .replaceAll(/\s+/g, ' '),
    ).join('|'),
  )

const count = (number: number) => number.toLocaleString('en')

/** The rows of a list's totals, as its manifest has them. */
function totalsOf({ totals }: Manifest): string[] {
  const hasCurrency = Object.values(totals.columns).some((column) => column.byCurrency !== undefined)
  return Object.entries(totals.columns).flatMap(([name, { sum, empty, unreadable, byCurrency }]) => {
    const sums = Object.entries(byCurrency ?? { '': sum }).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return sums.map(([currency, amount], at) =>
      [
        at === 0 ? name : '',
        ...(hasCurrency ? [currency] : []),
        amount,
        ...(at === 0 ? [count(empty), count(unreadable)] : ['', '']),
      ].join('|'),
    )
  })
}

test('the page of an export has the sums, counts and checksums of the manifests, wherever it was published', async () => {
  const world = await createWorld({
    counts: { customers: 120, plans: 20 },
  })
  const { control } = world.sandbox
  const [id] = control.ids({ resource: 'customers' })
  control.update({
    resource: 'customers',
    id: id!,
    fields: { aggregations: { sales: 'none', balance: 1.5 } },
  })
  await startTestWorker(world)
  const client = await connectTemporal()
  const input = { resources: [...resources], to: ['csv' as const, 'duckdb' as const] }
  const run = await startRun({ client, world, input })
  const report = await run.result()
  const page = await readFile(report.page!, 'utf8')
  const sheets = page.split('<article>').slice(1)
  expect(sheets).toHaveLength(resources.length)
  for (const [at, resource] of resources.entries()) {
    const published = report.exports.filter(isPublished).filter((one) => one.resource === resource)
    expect(published.map(({ destination }) => destination)).toEqual(input.to)
    const texts = await Promise.all(published.map((one) => readFile(one.manifest!, 'utf8')))
    const manifest = JSON.parse(texts[0]!) as Manifest
    const [facts, totals, files] = sheets[at]!.replace(/<section class="bars">[^]*?<\/section>/, '')
      .split('<section>')
      .map(rowsOf) as [string[], string[], string[]]
    expect(facts.join('\n')).toContain(`Records|${count(manifest.records)}`)
    expect(facts.join('\n')).toContain(
      `${count(manifest.windows)} ${manifest.windows === 1 ? 'window' : 'windows'} in ${count(manifest.requests)} requests`,
    )
    expect(totals.slice(1)).toEqual(totalsOf(manifest))
    const bars = sheets[at]!.matchAll(/<title>(\d{4}-\d\d): ([\d,]+)<\/title>/g)
    const shown = Array.from(bars, ([, month, records]) => [month, records] as const).filter(
      ([, records]) => records !== '0',
    )
    expect(Object.fromEntries(shown)).toEqual(
      Object.fromEntries(
        Object.entries(manifest.totals.created!.months!).map(([month, records]) => [month, count(records)]),
      ),
    )
    expect(files.slice(1)).toEqual(
      texts.flatMap((text, index) => [
        `${input.to[index]}|manifest.json||${createHash('sha256').update(text).digest('hex')}`,
        ...filesOf(JSON.parse(text) as Manifest).map(
          ({ path, rows, sha256 }) => `${input.to[index]}|${path}|${count(rows)}|${sha256}`,
        ),
      ]),
    )
  }
  expect(page).toMatch(/customers\.aggregations_sales<[^]*?<span>1<[^]*?customers.aggregations_sales_current/)
  // Temporal carries none of it.
  const history = await historyOf(run)
  expect(history).toContain('customers')
  expect(history).not.toContain('aggregations_balance')
  const again = await client.workflow.start('publishRun', {
    workflowId: `${run.workflowId}-again`,
    taskQueue: world.taskQueue,
    args: [{ run: report.run, to: ['duckdb'] }],
  })
  const published = (await again.result()) as typeof report
  const there = await readFile(published.page!, 'utf8')
  expect(
    there
      .split('<article>')
      .slice(1)
      .map((sheet) => rowsOf(sheet.split('<section>')[1]!)),
  ).toEqual(sheets.map((sheet) => rowsOf(sheet.split('<section>')[1]!)))
  // A warehouse has the same sums, and no files of its rows.
  expect(there).toContain(`run publish ${report.run} --to csv`)
})
