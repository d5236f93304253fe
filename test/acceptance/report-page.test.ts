import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { toCounts, type View } from '../../core/runs/view/view.ts'
import { toReportPage } from '../../core/runs/view/html.ts'
import { openBrowser } from './browser.ts'

/** A view in which every text is this one. */
const viewOf = (text: string): View => ({
  title: text,
  run: text,
  identity: { mode: 'live', workspace: text, baseUrl: text },
  verdict: { word: text, tone: 'doubtful', meaning: text },
  problems: [{ text, details: [text, text] }, { text }],
  counts: [
    { name: text, value: 1_234_567 },
    { name: text, value: 0 },
  ],
  next: [{ text, command: text }],
  tables: [
    {
      title: text,
      head: [text, text, text],
      rows: [
        [text, 12_345, text],
        [text, 6, text],
      ],
    },
  ],
  facts: [{ name: text, value: text }],
  files: [{ name: text, about: text }],
})

const example: View = {
  title: 'Import of retentions',
  run: 'import-retentions-20261121-093000',
  identity: { mode: 'live', workspace: 'acc_1234', baseUrl: 'https://billing.example.com' },
  verdict: {
    word: 'unproven',
    tone: 'doubtful',
    meaning: 'The outcome of some rows is not known.',
  },
  problems: [
    { text: '3 parked: rows 17, 204, 1,331.' },
    { text: 'Some values do not fit their columns.', details: ['aggregations.mrr: 4', 'phone: 1'] },
  ],
  counts: toCounts({
    done: 2_991,
    rejected: 6,
    parked: 3,
    unknown: 0,
    staged: 0,
    skipped: 0,
    notTried: 0,
  }),
  next: [{ text: '6 rows to fix', command: 'npx connector import retentions rejected.csv' }],
  tables: [
    {
      title: 'Control totals of the file',
      head: ['', 'changes', 'total', 'lines.amount', 'lines.quantity'],
      rows: [
        ['document 7', 2_000, '123456789012.50', '987654321098.10', '4000'],
        ['all', 3_000, '223456789012.50', '1987654321098.10', '6000'],
      ],
    },
  ],
  facts: [{ name: 'file', value: 'retentions-noviembre.csv' }],
  files: [{ name: 'results.csv', about: 'every row, with its outcome' }],
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'pages-'))
  onTestFinished(() => rm(made, { recursive: true }))
  return made
}

/** Opens a view's page as a file, and notes all that it asks for. */
async function show(view: View, { width }: { width: number }) {
  const path = join(await folder(), 'report.html')
  await writeFile(path, toReportPage(view))
  const browser = await openBrowser()
  const page = await browser.newPage({ viewport: { width, height: 800 } })
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  const told: string[] = []
  page.on('console', (message) => told.push(message.text()))
  page.on('dialog', (dialog) => void dialog.dismiss().then(() => told.push('a dialog')))
  await page.goto(pathToFileURL(path).href)
  return { page, asked, told, url: pathToFileURL(path).href }
}

/** How far the page is wider than what is seen of it. */
const overflow = (page: Page) =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

describe('a page of a report', () => {
  test('shows the verdict, then problems, next steps, counts and the rest', () => {
    const page = toReportPage(example)
    const order = [
      '<h1>Import of',
      'unproven</strong>',
      'Look at this',
      'Next',
      'Counts',
      '<svg',
      'Control',
      'Files',
    ]
    const places = order.map((word) => page.indexOf(word))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(Math.min(...places)).toBeGreaterThan(0)
    expect(page).toContain('2,991')
    expect(toReportPage({ ...example, problems: [] })).not.toContain('Look at this')
    expect(toReportPage({ ...example, counts: [{ name: 'records', value: 5 }] })).not.toContain('<svg')
    expect(toReportPage(example)).toBe(page)
  })

  test('shows any text as it is and never as markup', () => {
    const frame = toReportPage(viewOf('x'))
    const tags = (page: string) => page.match(/<[a-z/!][^>]*>/gi)?.map((tag) => tag.replace(/"[^"]*"/g, '""'))
    const nasty = fc.string({
      unit: fc.constantFrom('<', '>', '"', "'", '&', '/', 'a', ' ', '\u0000', '\ud800'),
    })
    fc.assert(
      fc.property(nasty, (text) => {
        expect(tags(toReportPage(viewOf(text)))).toEqual(tags(frame))
      }),
      { seed: 7 },
    )
    expect(toReportPage(viewOf('evil\u202egpj'))).not.toContain('\u202e')
  })

  test('runs nothing and asks for nothing, whatever got into its texts', async () => {
    const attack =
      '"><script>alert(1)</script><img src="http://127.0.0.1:9/x" onerror="alert(2)"><a href="javascript:alert(3)">'
    const { page, asked, told, url } = await show(viewOf(attack), { width: 800 })
    expect(asked).toEqual([url])
    expect(told).toEqual([])
    expect(await page.locator('h1').textContent()).toBe(attack)
    expect(await page.locator('script, img, iframe, link').count()).toBe(0)
    const link = await page.locator('a').getAttribute('href')
    expect(link?.startsWith('./')).toBe(true)
  })

  test.each([
    ['a report', example],
    ['words without end', viewOf('Donaudampfschifffahrtsgesellschaft'.repeat(8))],
    ['long sentences', viewOf('one word after the other '.repeat(20))],
  ])('fits a phone and paper: %s', async (_name, view) => {
    const { page } = await show(view, { width: 360 })
    expect(await overflow(page)).toBe(0)
    // A4 less its margins, at 96 dots an inch.
    await page.setViewportSize({ width: 680, height: 1000 })
    await page.emulateMedia({ media: 'print' })
    expect(await overflow(page)).toBe(0)
    const screenshots = process.env['REPORT_SCREENSHOTS']
    if (screenshots !== undefined) {
      const name = join(screenshots, view.title.slice(0, 12))
      await page.screenshot({ path: `${name}-print.png`, fullPage: true })
      await page.emulateMedia({ media: 'screen' })
      await page.setViewportSize({ width: 360, height: 800 })
      await page.screenshot({ path: `${name}-phone.png`, fullPage: true })
    }
  })
})
