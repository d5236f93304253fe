import { expect, test } from 'vitest'
import { exportPages, exportPage, sheetFor, toCsv } from '../../acceptance/example-exports.ts'
import { toMarkdown } from '../../../core/runs/view/markdown.ts'
import { toReportPage } from '../../../core/runs/view/html.ts'

const pageOf = (sheet: object, changes: object = {}) =>
  exportPage('proven', [{ ...toCsv('plans', 60, changes), sheet }])

test('the totals of a page are exact, of each currency by itself, and of many only the first', () => {
  const byCurrency = Object.fromEntries(
    Array.from('ABCDEFGHIJKLMN', (letter) => [`${letter}AA`, '1234567890123456789.10'] as const).toReversed(),
  )
  const created = { oldest: '2019-01-01T00:30:27Z', newest: '2026-11-20T22:58:47Z' }
  const columns = {
    'plans.amount': {
      sum: '1',
      empty: 2,
      unreadable: 3,
      byCurrency: { ...byCurrency, '': '-1', other: '0' },
    },
    'plan_tiers.amount': { sum: '0', empty: 60, unreadable: 0, byCurrency: {} },
  }
  const view = pageOf({ totals: { created, columns } })
  const [totals] = view.sheets![0]!.tables
  expect(totals!.rows.slice(0, 3)).toEqual([
    ['plans.amount', 'none', { amount: '-1' }, 2, 3],
    ['', 'AAA', { amount: '1234567890123456789.10' }, '', ''],
    ['', 'BAA', { amount: '1234567890123456789.10' }, '', ''],
  ])
  expect(totals!.rows.slice(12)).toEqual([
    ['', '4 more, in the manifest', '', '', ''],
    ['plan_tiers.amount', '', { amount: '0' }, 60, 0],
  ])
  // A copy of the number has no separators.
  expect(toReportPage(view)).toContain('<span class="amount">-1</span>')
  expect(toReportPage(view)).toContain('>1<i>234</i><i>567</i><i>890</i><i>123</i><i>456</i><i>789.10</i><')
  expect(JSON.stringify(view.sheets![0]!.facts)).toContain(created.oldest)
})

test('a page says the verdict of each destination where they differ, and the premises only of a proof', () => {
  const named = (view: typeof incremental) => view.sheets![0]!.facts.map(({ name }) => name)
  const incremental = exportPages['export-warehouses']!
  expect(named(incremental)).toContain('Completeness in csv')
  expect(named(incremental)).toContain('Completeness in duckdb')
  expect(named(pageOf({}))).toContain('Completeness')
  expect(toReportPage(pageOf({}))).toMatch(
    /Premises: created, slice, lag, date, status, count[^]*a response is one slice/,
  )
  const unproven = pageOf({}, { verdict: 'unproven', scope: ['Others may be missing.'] })
  expect(toReportPage(unproven)).toContain('Others may be missing.')
  expect(toReportPage(unproven)).not.toMatch(/premises/i)
})

test('a page names the query: filters, what was left out, a limit, and the time since which changes were read', () => {
  const query = (sheet: object) => pageOf(sheet).sheets![0]!.facts[1]!.value
  expect(query({})).toBe('all records, by created; no filters; 1 window in 4 requests')
  expect(
    query({
      changedSince: '2026-11-20T02:00:03.000Z',
      ordering: 'updated',
      filters: { status: 'active' },
      excluded: ['plans.name'],
      hashed: ['plans.id'],
      capped: true,
    }),
  ).toBe(
    'what changed since 2026-11-20T02:00:03.000Z, by updated; where status = active; without plans.name; plans.id hashed; 1 window in 4 requests, then its limit ended the read',
  )
  expect(query({ mode: 'byId', asked: 3 })).toBe('3 documents by id, in 4 requests')
  expect(query({ mode: 'byId', asked: 1, requests: 1 })).toBe('1 document by id, in 1 request')
})

test('a page names the commands that check its files, and Python only where it can', () => {
  const commands = (sheet: object, changes: object = {}) =>
    pageOf(sheet, changes).checks!.flatMap(({ command = '' }) =>
      command
        .split(/ (?=\/)| /)
        .slice(0, 2)
        .join(' '),
    )
  expect(commands({})).toEqual(['npx connector', 'python3 scripts/check-certificate.py', ''])
  const { dialect } = sheetFor(toCsv('plans', 60), {})
  expect(commands({ dialect: { ...dialect!, formulaGuard: true } })).toEqual(['npx connector', ''])
  expect(commands({}, { where: 's3://bucket/exports/plans/x' })).toEqual(['npx connector', ''])
  expect(exportPages['export-failed']!.checks!.map(({ command }) => command)).toContainEqual(
    expect.stringMatching(/run publish \S+ --to csv$/),
  )
})

test('a page calls what it shows a list only where it is one, and a certificate only where there is one', () => {
  const listOf = (view: typeof list) => view.pageTables![0]!.head[0]
  const textOf = (view: typeof list) => view.checks!.map(({ text }) => text).join()
  const list = pageOf({})
  expect(listOf(list)).toBe('list')
  expect(textOf(list)).toMatch(/certificate/)
  const fetched = { ...toCsv('creditnotes', 3, { mode: 'byId' }), sheet: { asked: 3 } }
  const documents = exportPage('proven', [fetched, { ...fetched, destination: 'duckdb', manifest: null }])
  expect(listOf(documents)).toBe('documents')
  expect(textOf(documents)).not.toMatch(/certificate/)
  const stored = { ...fetched, destination: 'duckdb' as const, manifest: null }
  expect(textOf(exportPage('proven', [stored]))).toBe('a warehouse keeps no files of its rows; to have them')
})

test('a page says whose clock a proof goes by, and only of a proof', () => {
  const read = (changes: object) => JSON.stringify(pageOf({}, changes).evidence)
  expect(read({})).toContain('is by the clock of the service')
  expect(read({ verdict: 'unproven', completeThrough: null })).not.toContain('clock')
})

test('the totals of some records are not called those of all', () => {
  const title = (sheet: object, changes: object = {}) => pageOf(sheet, changes).sheets![0]!.tables[0]!.title
  expect(title({})).toBe('Totals')
  expect(title({ filters: { status: 'active' } })).toBe('Totals of the records that match')
  expect(title({ mode: 'byId' })).toBe('Totals of these documents')
  expect(title({ mode: 'incremental' })).toBe('Totals of the records that changed')
  expect(title({}, { verdict: 'unproven' })).toBe('Totals of what was read: records may be missing')
})

test('a page shows the records by month, also the months without one, and of a long time by year', () => {
  const barsOf = (months: Record<string, number>) => {
    const created = { oldest: '2019-01-01T00:30:27Z', newest: '2026-11-20T22:58:47Z', months }
    return pageOf({ totals: { created, columns: {} } }).sheets![0]!.bars
  }
  expect(barsOf({ '2026-02': 3, '2025-11': 1 })).toEqual({
    title: 'Records by month of created',
    of: [
      { name: '2025-11', value: 1 },
      { name: '2025-12', value: 0 },
      { name: '2026-01', value: 0 },
      { name: '2026-02', value: 3 },
    ],
  })
  expect(barsOf({ '2016-12': 4, '2026-11': 2 })?.of).toHaveLength(120)
  const years = barsOf({ '2016-11': 4, '2016-12': 1, '2026-11': 2 })
  expect(years).toMatchObject({ title: 'Records by year of created', of: { length: 11, 0: { value: 5 } } })
  // One wrong date makes no picture of nothing.
  expect(barsOf({ '0001-01': 1, '2026-11': 2 })).toBeUndefined()
  expect(barsOf({ '2026-11': 2 })).toBeUndefined()
  expect(barsOf({})).toBeUndefined()
})

test('Temporal shows nothing of the sheets', () => {
  expect(toMarkdown(exportPages['export']!)).not.toContain('aggregations')
})
