import { expect, test } from 'vitest'
import type { Reference } from '../../../core/destinations/manifest.ts'
import type { ExportReport, NotPublished, PublishedExport } from '../../../core/exports/report.ts'
import { toExportView } from '../../../core/exports/view.ts'

const toCsv: PublishedExport = {
  resource: 'customers',
  destination: 'csv',
  verdict: 'proven',
  reasons: [],
  records: 5_000,
  mode: 'full',
  completeThrough: '2026-11-21T10:04:37Z',
  capped: false,
  new: null,
  changed: null,
  deleted: null,
  heldBack: 0,
  where: 'exports/customers/2026-11-21T10-04-37Z-export-all-1f0c2b7a90',
  manifest: null,
  scope: [],
  warnings: [],
}

const viewOf = (exports: ExportReport['exports'], more: Partial<ExportReport> = {}) =>
  toExportView({ summary: '', run: 'export-all-1', verdict: 'proven', exports, ...more })
const headOf = (published: PublishedExport) => viewOf([published]).tables?.[0]?.head

test('the table of an export has only the columns that its destinations fill in', () => {
  expect(headOf(toCsv)).toEqual(['resource', 'to', 'verdict', 'records', 'where'])
  const toDuckDb = headOf({ ...toCsv, destination: 'duckdb', new: 1, changed: 0, deleted: 2 })
  expect(toDuckDb?.join(' ')).toBe('resource to verdict records new changed deleted where')
})

test('a list that only one of its destinations has was published, and one record is no plural', () => {
  const failed: NotPublished = { resource: 'customers', destination: 'csv', verdict: 'failed', reasons: [] }
  const headlineOf = (...exports: ExportReport['exports']) =>
    viewOf(exports, { verdict: 'failed' }).verdict?.headline
  expect(headlineOf(failed, { ...toCsv, destination: 'duckdb' })).toBe('5,000 customers')
  expect(headlineOf({ ...toCsv, records: 1 })).toBe('1 customer')
  expect(headlineOf({ ...failed, destination: null })).toBe('customers were not published')
})

test('a page asks for attention where deletes were held back, and only notices what changes nothing in the data', () => {
  const drift = { ...toCsv, warnings: ['the service sends a new field, plan_tier'] }
  const held = { ...toCsv, resource: 'plans' as const, heldBack: 2, warnings: ['2 plans are gone'] }
  const exports = [drift, { ...drift, destination: 'parquet' as const }, held]
  const first = [{ id: 'cus_1', from: 'sub_1', reason: 'deleted' as const }]
  const reference: Reference = {
    field: 'subscriptions.customer',
    to: 'customers',
    checked: 20,
    complete: false,
    dangling: { ids: 1, reasons: { deleted: 1 }, first },
  }
  const { problems, notices } = viewOf(exports, { references: [reference] })
  expect(problems).toEqual([{ text: 'plans: 2 plans are gone' }])
  expect(notices).toEqual([
    { text: 'customers: the service sends a new field, plan_tier' },
    {
      text: 'customers that subscriptions.customer names and this export lacks: 1 (1 deleted meanwhile).',
      details: ['cus_1 (in sub_1): deleted meanwhile'],
    },
  ])
  expect(viewOf([drift], { references: [reference] }).problems).toEqual([])
})

test('a page names the first ten ids that an export lacks, and says how many more there are', () => {
  const ids = Array.from({ length: 12 }, (_, at) => `cus_${at + 1}`)
  const dangling = {
    ids: 1_012,
    reasons: { deleted: 1_012 },
    first: ids.map((id) => ({ id, from: 'sub_1', reason: 'deleted' as const })),
  }
  const references: Reference[] = [
    { field: 'subscriptions.customer', to: 'customers', checked: 2_000, complete: false, dangling },
  ]
  const { notices } = viewOf([toCsv], { references })
  const [{ details = [] } = {}] = notices ?? []
  expect(details).toHaveLength(11)
  expect(details.slice(-2)).toEqual(['cus_10 (in sub_1): deleted meanwhile', 'and 1,002 more'])
})
