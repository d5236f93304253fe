import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { View } from '../../core/runs/view/view.ts'
import { toReportPage } from '../../core/runs/view/html.ts'
import { openBrowser } from './browser.ts'
import { examplePages } from './example-pages.ts'

/** A view in which every text is this one. */
const viewOf = (text: string): View => ({
  title: text,
  run: text,
  identity: { mode: 'live', workspace: text, baseUrl: text },
  verdict: { word: text, tone: 'doubtful', headline: text, meaning: text },
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
  sheets: [
    {
      title: text,
      facts: [{ name: text, value: [text, text] }],
      tables: [{ title: text, head: [text], rows: [[text]] }],
    },
  ],
  notices: [{ text, details: [text] }],
  checks: [{ text, command: text }],
  evidence: [{ name: text, value: text }],
  files: [{ name: text, about: text }],
})

/** The same, also where only a time, an amount, a state or a month is ever shown. */
const hostile = (text: string): View => ({
  ...viewOf(text),
  sheets: [
    {
      title: text,
      facts: [
        {
          name: text,
          value: [{ time: text }, { amount: text }, { text, href: text }, { text, tone: 'good' }],
        },
      ],
      bars: {
        title: text,
        of: [
          { name: text, value: 1 },
          { name: text, value: 2 },
        ],
      },
      tables: [{ title: text, head: [text], rows: [[text]] }],
    },
  ],
})

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

/** The visible words and numbers that are broken over a line, and the cells whose text is wider than they are. */
const misfits = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const found = []
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    while (texts.nextNode()) {
      const node = texts.currentNode
      if (!node.parentElement.checkVisibility()) continue
      for (const { 0: word, index } of node.data.matchAll(/\\d[\\d.,:-]*\\d|[^\\s/-]+/g)) {
        range.setStart(node, index)
        range.setEnd(node, index + word.length)
        const lines = new Set(Array.from(range.getClientRects(), ({ bottom }) => Math.round(bottom)))
        if (word.length <= 24 && lines.size > 1) found.push('broken: ' + word)
      }
    }
    for (const amount of document.querySelectorAll('.amount'))
      if (amount.checkVisibility() && amount.textContent.length <= 40 && new Set(Array.from(amount.getClientRects(), ({ bottom }) => Math.round(bottom))).size > 1)
        found.push('broken: ' + amount.textContent)
    for (const cell of document.querySelectorAll('th, td, dt, dd, code'))
      if (cell.checkVisibility() && cell.scrollWidth > cell.clientWidth + 1 && getComputedStyle(cell).display !== 'inline')
        found.push('too wide: ' + cell.textContent.trim())
    return found
  })()`)

describe('a page of a report', () => {
  test('shows the outcome, then counts, problems, next steps, tables and files', () => {
    const page = toReportPage(examplePages['import']!)
    const order = [
      '<h1>Import of',
      'unproven</span>',
      '2,991 of 3,000',
      'class="shares"',
      'Needs attention',
      'Next',
    ]
    const places = [...order, 'Rows not done', 'Control', 'Files', 'How it was read'].map((word) =>
      page.indexOf(word),
    )
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(Math.min(...places)).toBeGreaterThan(0)
    expect(toReportPage({ ...examplePages['import']!, problems: [] })).not.toContain('Needs attention')
    expect(toReportPage(examplePages['import']!)).toBe(page)
  })

  test('shows any text as it is and never as markup', () => {
    const frame = toReportPage(hostile('x'))
    // Behind a slash, a line may be broken.
    const tags = (page: string) =>
      page
        .replaceAll('<wbr />', '')
        .match(/<[a-z/!][^>]*>/gi)
        ?.map((tag) => tag.replace(/"[^"]*"/g, '""'))
    const nasty = fc.string({
      unit: fc.constantFrom('<', '>', '"', "'", '&', '/', 'a', ' ', '\u0000', '\ud800'),
      minLength: 1,
    })
    fc.assert(
      fc.property(nasty, (text) => {
        expect(tags(toReportPage(hostile(text)))).toEqual(tags(frame))
      }),
      { seed: 7 },
    )
    expect(toReportPage(hostile('evil\u202egpj'))).not.toContain('\u202e')
  })

  test('runs nothing and asks for nothing, whatever got into its texts', async () => {
    const attack =
      '"><script>alert(1)</script><img src="http://127.0.0.1:9/x" onerror="alert(2)"><a href="javascript:alert(3)">'
    const { page, asked, told, url } = await show(hostile(attack), { width: 800 })
    expect(asked).toEqual([url])
    expect(told).toEqual([])
    expect(await page.locator('h1').textContent()).toBe(attack)
    expect(await page.locator('img, iframe, link').count()).toBe(0)
    expect(await page.locator('script').count()).toBe(1)
    const links = await page.locator('a').all()
    expect(links).toHaveLength(2)
    for (const link of links) expect(await link.getAttribute('href')).toMatch(/^\.\//)
  })

  test.each(Object.entries(examplePages))(
    'breaks no word or number on a screen, a phone and paper: %s',
    async (_name, view) => {
      const { page, told } = await show(view, { width: 1000 })
      for (const [width, media] of [
        [1000, 'screen'],
        [360, 'screen'],
        [688, 'print'],
      ] as const) {
        await page.setViewportSize({ width, height: 800 })
        await page.emulateMedia({ media })
        expect(await misfits(page)).toEqual([])
        expect(await overflow(page)).toBe(0)
      }
      expect(told).toEqual([])
    },
  )

  test.each([
    ['export-customers', 1],
    ['export-subscriptions', 1],
    ['export-plans', 1],
    ['export-retentions', 1],
    ['export', 3],
  ])('prints on as few sheets of A4 as it can: %s', async (name, sheets) => {
    const { page } = await show(examplePages[name]!, { width: 1000 })
    const pdf = await page.pdf({ format: 'A4' })
    expect(pdf.toString('latin1').match(/\/Type \/Page\b/g)).toHaveLength(sheets)
  })

  test.each([
    ['words without end', viewOf('Donaudampfschifffahrtsgesellschaft'.repeat(8))],
    ['long sentences', viewOf('one word after the other '.repeat(20))],
  ])('fits a phone and paper: %s', async (_name, view) => {
    const { page } = await show(view, { width: 360 })
    expect(await overflow(page)).toBe(0)
    // A4 less its margins, at 96 dots an inch.
    await page.setViewportSize({ width: 688, height: 1000 })
    await page.emulateMedia({ media: 'print' })
    expect(await overflow(page)).toBe(0)
  })

  test('shows times in the zone of the reader, and in UTC without scripts', async () => {
    const { page, url } = await show(examplePages['export']!, { width: 1000 })
    expect(await page.locator('.facts time').first().textContent()).toMatch(
      /^2026-11-2[01] \d\d:\d\d:03 [+-]\d\d:\d\d$/,
    )
    const context = await page.context().browser()!.newContext({ javaScriptEnabled: false })
    const plain = await context.newPage()
    await plain.goto(url)
    expect(await plain.locator('.facts time').first().textContent()).toBe('2026-11-21 02:00:03 UTC')
  })

  test('is dark where the reader prefers that, but not on paper', async () => {
    const { page } = await show(examplePages['recovery']!, { width: 1000 })
    const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    expect(await background()).toBe('rgb(255, 255, 255)')
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await background()).toBe('rgb(20, 24, 28)')
    await page.emulateMedia({ colorScheme: 'dark', media: 'print' })
    expect(await background()).toBe('rgb(255, 255, 255)')
  })
})
