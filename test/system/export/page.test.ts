import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { filesOf, type Manifest } from '../../../core/destinations/manifest.ts'
import { isPublished } from '../../../core/exports/report.ts'
import { connectTemporal, createWorld, historyOf, startRun, startTestWorker } from './world.ts'

/** The rows of each part of a page, each with its cells side by side. */
const partsOf = (page: string) =>
  page
    .split('<section>')
    .map((part) =>
      Array.from(part.matchAll(/<tr>(.*?)<\/tr>/gs), ([, row = '']) =>
        Array.from(row.matchAll(/<t[dh].*?>(.*?)<\/t[dh]>/gs), ([, cell = '']) =>
          cell.replaceAll(/<[^>]*>/g, '').trim(),
        ).join('|'),
      ),
    )

test('the page of an export has the sums, counts and checksums of the manifests that it links to, wherever it was published', async () => {
  const world = await createWorld({ counts: { customers: 120 } })
  const { control } = world.sandbox
  const [id] = control.ids({ resource: 'customers' })
  const aggregations = { sales: 'none', balance: 1.5 }
  control.update({ resource: 'customers', id: id!, fields: { aggregations } })
  await startTestWorker(world)
  const client = await connectTemporal()
  const input = { resources: ['customers' as const], to: ['csv' as const, 'duckdb' as const] }
  const run = await startRun({ client, world, input })
  const report = await run.result()
  const page = await readFile(report.page!, 'utf8')
  const [, sheet = ''] = page.split('<article>')
  const [facts, totals, files] = partsOf(sheet.replace(/<section class="bars">[^]*?<\/section>/, ''))
  const published = report.exports.filter(isPublished)
  const texts = await Promise.all(published.map((one) => readFile(one.manifest!, 'utf8')))
  const links = [...page.matchAll(/href="([^"]*)"/g)].map(([, href = '']) => decodeURIComponent(href))
  expect(links.map((link) => join(dirname(report.page!), link))).toEqual(published.map((one) => one.manifest))
  const manifest = JSON.parse(texts[0]!) as Manifest
  expect(manifest).toMatchObject({ run: report.run, verdict: 'proven', records: 120 })
  expect(facts?.join('\n')).toContain('Records|120')
  expect(facts?.join('\n')).toContain(`${manifest.windows} windows in ${manifest.requests} requests`)
  expect(totals?.slice(1)).toEqual(
    Object.entries(manifest.totals.columns).flatMap(([name, { empty, unreadable, byCurrency }]) =>
      Object.entries(byCurrency!)
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([currency, sum], at) =>
          (at === 0 ? [name, currency, sum, empty, unreadable] : ['', currency, sum, '', '']).join('|'),
        ),
    ),
  )
  expect(manifest.totals.columns['customers.aggregations_sales']).toMatchObject({ unreadable: 1 })
  expect(files?.slice(1)).toEqual(
    texts.flatMap((text, at) => [
      `${input.to[at]}|manifest.json||${createHash('sha256').update(text).digest('hex')}`,
      ...filesOf(JSON.parse(text) as Manifest).map(
        ({ path, rows, sha256 }) => `${input.to[at]}|${path}|${rows}|${sha256}`,
      ),
    ]),
  )
  // Temporal carries none of it, and no row, in some tens of events.
  const history = await historyOf(run)
  expect(history).toContain('customers')
  for (const secret of ['aggregations_balance', world.sandbox.token, String(id)])
    expect(history).not.toContain(secret)
  expect((await run.fetchHistory()).events?.length).toBeLessThan(60)
  const again = await client.workflow.start('publishRun', {
    workflowId: `${run.workflowId}-again`,
    taskQueue: world.taskQueue,
    args: [{ run: report.run, to: ['duckdb'] }],
  })
  const there = await readFile(((await again.result()) as typeof report).page!, 'utf8')
  // A warehouse has the same sums, and no files of its rows.
  expect(partsOf(there)).toContainEqual(totals)
  expect(there).toContain(`run publish ${report.run} --to csv`)
})
