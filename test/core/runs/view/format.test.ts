import { afterEach, expect, test } from 'vitest'
import {
  cellText,
  formatAmount,
  formatLocalTime,
  formatTable,
  formatTime,
} from '../../../../core/runs/view/format.ts'
import { toReportPage } from '../../../../core/runs/view/html.ts'
import { toMarkdown } from '../../../../core/runs/view/markdown.ts'

const zone = process.env['TZ']
afterEach(() => {
  if (zone === undefined) delete process.env['TZ']
  else process.env['TZ'] = zone
})

const evening = '2026-11-22T01:30:07.000Z'

test.each([
  ['America/Santiago', '2026-11-21 22:30:07 -03:00'],
  ['Asia/Kolkata', '2026-11-22 07:00:07 +05:30'],
  ['America/St_Johns', '2026-11-21 22:00:07 -03:30'],
  ['UTC', '2026-11-22 01:30:07 +00:00'],
])('a time is shown with the offset of %s: an evening there is not the next day', (name, text) => {
  process.env['TZ'] = name
  expect(formatLocalTime(evening)).toBe(text)
  expect(formatLocalTime(Date.parse(evening), 'minutes')).toBe(`${text.slice(0, 16)}${text.slice(19)}`)
  expect(Date.parse(text.replace(' ', 'T').replace(' ', ''))).toBe(Date.parse(evening))
})

test('a terminal shows local times, the Temporal UI and a page without scripts UTC', () => {
  process.env['TZ'] = 'America/Santiago'
  const view = {
    title: 'Import of retentions',
    facts: [{ name: 'started', value: { time: evening } }],
    tables: [{ title: 'Decisions', head: ['about', 'when'], rows: [['approval', { time: evening }]] }],
  }
  const [page, details] = [toReportPage(view), toMarkdown(view)]
  expect(page.match(/2026-11-22 01:30:07 UTC/g)).toHaveLength(2)
  expect(details).toContain('2026-11-22 01:30:07 UTC'.replaceAll(' ', '\u00a0'))
  expect(formatTable(view.tables[0]!)).toContain('2026-11-21 22:30:07 -03:00')
  expect(cellText({ time: evening }, formatTime)).toBe('2026-11-22 01:30:07 UTC')
})

test.each([
  ['1883.50', ',', '1.883,50'],
  ['-1234567.8', '.', '-1,234,567.8'],
  ['999', ',', '999'],
  ['0.00', ',', '0,00'],
  ['3435000', undefined, '3435000'],
] as const)('the amount %s with the mark %s is %s', (digits, mark, text) => {
  expect(formatAmount(digits, mark)).toBe(text)
})
