import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { escapeMarkdown, toMarkdown } from '../../../../core/runs/view/markdown.ts'
import { sentence, strong, type View } from '../../../../core/runs/view/view.ts'
import { toLiveExport } from '../../../../workflows/export-view.ts'
import { toImportText } from '../../../../workflows/write-run/text.ts'
import { toRecoveryText } from '../../../../workflows/write-run/text.ts'
import { toLiveView } from '../../../../workflows/write-run/view.ts'

/** Everything that text of others must not become; what stands behind a backslash is shown. */
const active = (markdown: string) =>
  markdown
    .replaceAll(/\\[!-/:-@[-`{-~]/g, 'x')
    .match(/[`*[\]<>|~#&!]|:\/\/|\bwww\.|\p{Cc}|(?<![\p{L}\p{N}])_|^\s*([-+=]|\d+[.)])/giu)

test('text of others is shown and means nothing, and plain text stays as it is', () => {
  const part = fc.constantFrom(
    '[x](http://evil)',
    '![](http://evil/p.png)',
    '<img src=x>',
    '|',
    '\n',
    '# ',
    '- ',
    '1. ',
    '`',
    '**',
    '__',
    '_',
    '\\',
    '&amp;',
    'www.evil.cl',
    'https://evil',
    '\u001b[2J',
    'a',
    ' ',
    '~~',
    '> ',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
      const text = parts.join('')
      expect(active(escapeMarkdown(text))).toBeNull()
      const back = escapeMarkdown(text).replaceAll(/\\([!-/:-@[-`{-~])/g, '$1')
      expect(back).toBe(
        text
          .trim()
          .replaceAll(/\s+/g, ' ')
          .replaceAll('\u001b', String.raw`\u001b`),
      )
    }),
    { seed: 20261122, numRuns: 500 },
  )
  const plain = 'Read acc_12: 2 of 3 lists (customers.csv), 10.5 s; a@b.cl said "no"'
  expect(escapeMarkdown(plain)).toBe(plain)
})

const evil = '[pay](http://evil.cl) ![](http://evil.cl/p.png) | <b>\n# x'
const linked = /(?<!\\)\]\(|(?<!\\)!\[|(?<!\\)<b>|\n# x|(?<!\\):\/\/evil/

/** A view in which every text is this one, but those that stand in code. */
const viewOf = (text: string): View => ({
  title: text,
  run: text,
  identity: { mode: 'live', workspace: text, baseUrl: 'https://api.example.com' },
  verdict: { word: text, tone: 'doubtful', headline: '', meaning: text },
  summary: text,
  status: [text, sentence`${text} ${strong(text)}`],
  problems: [{ text, details: [text] }],
  next: [{ text }],
  counts: [{ name: text, value: 1 }],
  unit: text,
  tables: [{ title: text, head: [text, text], rows: [[text, 1]] }],
  facts: [{ name: text, value: text }],
  files: [{ name: 'results.csv', about: text }],
  folder: '/data',
  page: '/data/report.html',
  controls: [text],
})

test('a view in the Temporal UI makes no link, image or line of what a service, a file or a person wrote', () => {
  const shown = toMarkdown(viewOf(evil))
  expect(shown.match(/evil/g)?.length).toBeGreaterThan(20)
  expect(shown).not.toMatch(linked)
})

test('amounts in a table stay as they are', () => {
  const table = { title: '', head: ['', 'total'], rows: [['file', '1500.10']] }
  expect(toMarkdown({ title: '', tables: [table] }).replaceAll('\u00a0', '')).toContain('| file | 1500.10 |')
})

const shownTable = (head: string[], rows: (string | number)[][]) =>
  toMarkdown({ title: '', tables: [{ title: '', head, rows }] }).replaceAll('\u00a0', ' ')

test('a table too wide for the Temporal UI lists below it what all rows share and what is long', () => {
  const where = '/srv/connector/exports/billing.duckdb'
  const shown = shownTable(
    ['resource', 'to', 'records', 'why', 'where'],
    [
      ['plans', 'duckdb', 1, 'the same id came twice in one response', where],
      ['customers', 'duckdb', 2, '', where],
    ],
  )
  expect(shown.match(/\|.*\|/g)).toEqual([
    '| resource |   records |',
    '| :--- | ---: |',
    '| plans |   1 |',
    '| customers |   2 |',
  ])
  expect(shown).toContain(`- to: duckdb\n- plans: the same id came twice in one response\n- where: ${where}`)
})

test('a reason that several lists of an export share is told once, as a sentence', () => {
  const reason = 'The disk that holds the data folder is full.'
  const resources = ['customers', 'plans'].map((resource) => ({ resource, state: 'failed' as const, reason }))
  const shown = toMarkdown(toLiveExport({ name: 'export', phase: 'running', resources }))
  expect(shown).toContain(`\n- ${reason}\n`)
})

test('a table too wide for the Temporal UI is turned over where that makes it narrower', () => {
  const fields = ['changes', 'description', 'unit_amount', 'quantity_sent', 'net_amount']
  const shown = shownTable(
    ['', ...fields],
    [
      ['file', 30, '1,500.00', '60', '30.10', '1'],
      ['33', 20, '1,500.00', '40', '20.10', '1'],
    ],
  )
  expect(shown).toContain('| |   file |   33 |\n| :--- | ---: | ---: |\n| changes |   30 |   20 |')
  expect(shown.split('\n')).toHaveLength(2 + fields.length)
})

test('totals too large for a table of the Temporal UI are told line by line', () => {
  const amount = '123.456.789.301.263,75'
  const shown = shownTable(
    ['', 'changes', 'lines.amount', 'lines.tax'],
    [
      ['file (25 rows)', 25, amount, amount],
      ['document 7: done', 24, amount, ''],
    ],
  )
  expect(shown).toBe(
    `- file (25 rows): changes 25, lines.amount ${amount}, lines.tax ${amount}\n- document 7: done: changes 24, lines.amount ${amount}`,
  )
})

test('code in a view stays code, whatever is in it', () => {
  const shown = toMarkdown({ title: '', next: [{ text: 'run', command: 'x `[a](http://evil.cl)` \u001b' }] })
  expect(shown).toBe("- run: `x '[a](http://evil.cl)' \\u001b`")
})

test('live views escape names of files and reasons', () => {
  const totals = { rows: 1, changes: 1 }
  const staged = { totals, invalid: 0, canary: [], open: 1, tables: [] }
  const importing = { phase: 'sending', kind: 'addons', file: evil, limits: {}, staged } as never
  const recovering = {
    phase: 'sending',
    limits: {},
    failedCanaries: [evil],
    staged: { candidates: 1, proven: false, reasons: [evil], tables: [] },
  } as never
  const pages = [
    toLiveView(importing, toImportText(importing)),
    toLiveView(recovering, toRecoveryText(recovering)),
    toLiveExport({
      name: 'export',
      phase: 'running',
      resources: [{ resource: 'plans', state: 'failed', reason: evil }],
    }),
  ].map(toMarkdown)
  for (const page of pages) {
    expect(page).toMatch(/evil|p\.png/)
    expect(page).not.toMatch(linked)
  }
})

test('live views say why parked rows are parked, each job in its own words', () => {
  const counts = { staged: 0, done: 0, rejected: 0, unknown: 0, parked: 5, skipped: 0, notTried: 0 }
  const pageOf = (parkedRows: number[]) => {
    const progress = { phase: 'sending', limits: {}, failedCanaries: [], counts, parkedRows } as never
    return {
      imported: toMarkdown(toLiveView(progress, toImportText(progress))),
      recovered: toMarkdown(toLiveView(progress, toRecoveryText(progress))),
    }
  }
  const inDoubt = pageOf([3, 4])
  expect(inDoubt.imported).toContain(
    '**rows 3, 4 and 3 more** (numbered as in the sheet). The service did not',
  )
  expect(inDoubt.recovered).toContain('**rows 3, 4** of recovery.csv. The service did not answer the resume')
  expect(inDoubt.recovered).toContain('3 need a person for another reason, which the report names.')
  const { recovered } = pageOf([])
  expect(recovered).toContain('5 need a person for another reason')
  expect(recovered).not.toMatch(/did not answer|numbered as in the sheet|parked subscriptions/)
})

test('a run that begins again and asks for approval says that some were sent', () => {
  const waitingFor = { question: 'approval', until: '2026-11-21T02:00:07Z' }
  const pageOf = (sent: number) => {
    const staged = { sent, open: 3, canary: [1], tables: [], totals: {} }
    const progress = { phase: 'waiting for approval', failedCanaries: [], staged, waitingFor } as never
    const views = [toImportText(progress), toRecoveryText(progress)]
    return views.map((text) => toMarkdown(toLiveView(progress, text))).join()
  }
  expect(pageOf(0)).toMatch(/Nothing was sent yet\.[^]*Nothing was resumed yet\./)
  expect(pageOf(1)).toMatch(/1 was sent\. Approve to send the others\.[^]*1 was resumed\. Approve/)
})
