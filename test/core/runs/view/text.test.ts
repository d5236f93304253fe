import { expect, test } from 'vitest'
import { outcomes } from '../../../../core/changes/outcomes.ts'
import { countLabels, outcomeLabel } from '../../../../core/runs/view/counts.ts'
import { formatTable } from '../../../../core/runs/view/format.ts'
import { code, sentence, toCounts, type View } from '../../../../core/runs/view/view.ts'
import { toText } from '../../../../core/runs/view/text.ts'

const view: View = {
  title: 'Import of retentions',
  run: 'import-1',
  summary: '187 of 200 done',
  problems: [{ text: sentence`Look at ${code('parked.csv')}.`, details: ['row 17'] }],
  next: [{ text: '13 rows to fix', command: 'npx connector import retentions rejected.csv' }],
  counts: toCounts({ done: 187, rejected: 13, staged: 0, unknown: 0, parked: 0, skipped: 0, notTried: 0 }),
  unit: 'rows',
  tables: [
    { title: 'Totals', head: ['', 'total'], rows: [['file', '46435500.10']] },
    { title: 'Empty', head: ['x'], rows: [] },
  ],
  folder: '/data/imports/import-1',
  page: '/data/imports/import-1/report.html',
}

test('the terminal shows a view from its summary to its folder', () => {
  expect(toText(view).split('\n')).toEqual([
    'import-1: 187 of 200 done',
    '',
    '          rows',
    'done       187',
    'rejected    13',
    '',
    'Totals',
    '            total',
    'file  46435500.10',
    '',
    'Look at parked.csv.',
    '  row 17',
    '',
    'Next: 13 rows to fix:',
    '  npx connector import retentions rejected.csv',
    '',
    'Report: /data/imports/import-1/report.html',
    'Folder: /data/imports/import-1',
  ])
})

test('a command with its own server suggests commands with their own, too, where they take --local', () => {
  expect(toText(view, { local: true })).toContain('npx connector import retentions rejected.csv --local\n')
  const stepOf = (command: string) => toText({ ...view, next: [{ text: 'next', command }] }, { local: true })
  expect(stepOf('npx connector run publish export-1')).toContain('run publish export-1 --local\n')
  for (const command of [
    'npx ./connector-0.1.0.tgz run resolve import-1 --why "..."',
    'connector state repair',
  ])
    expect(stepOf(command)).toContain(`${command}\n`)
})

test('a table aligns numbers right and keeps control characters out of the terminal', () => {
  const rows = [
    ['a\u001b[2J', 12_345],
    ['b', 6],
  ] as const
  expect(formatTable({ head: ['name', 'n'], rows })).toBe(
    String.raw`name             n
a\u001b[2J  12,345
b                6`,
  )
})

test('no label that people read is camelCase', () => {
  const labels = [...Object.keys(outcomes).map(outcomeLabel), ...Object.values(countLabels)]
  expect(labels.filter((label) => /[a-z][A-Z]/.test(label))).toEqual([])
  expect(outcomeLabel('fellBack')).toBe('fell back')
})
