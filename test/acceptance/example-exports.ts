import { createHash } from 'node:crypto'
import { toExportPage } from '../../core/exports/page.ts'
import {
  type ExportedItem,
  type ExportReport,
  isPublished,
  type PublishedExport,
} from '../../core/exports/report.ts'
import { type Sheet, sheetOf } from '../../core/exports/sheet.ts'
import type { View } from '../../core/runs/view/view.ts'

export const folder = '/srv/connector'
const baseUrl = 'https://billing.example.com'
export const identity = { mode: 'live', workspace: 'acc_1234', baseUrl, store: 'state' } as const
export const startedAt = '2026-11-21T02:00:03.000Z'

const list = (
  resource: PublishedExport['resource'],
  records: number,
  changes: Partial<PublishedExport> = {},
): PublishedExport => ({
  resource,
  destination: 'duckdb',
  verdict: 'proven',
  reasons: [],
  warnings: [],
  mode: 'full',
  scope: [
    `Every record of ${resource} that was in the list throughout and was created up to 2026-11-21T01:59:03.000000Z is here once.`,
  ],
  completeThrough: '2026-11-21T01:59:03.000000Z',
  records,
  capped: false,
  new: 0,
  changed: 0,
  deleted: 0,
  heldBack: 0,
  where: `${folder}/exports/billing.duckdb`,
  manifest: `${folder}/exports/${resource}/2026-11-21T02-00-03Z-export-all-1f0c2b7a90/manifest.json`,
  ...changes,
})

const exported = {
  summary: '',
  run: 'export-all-1f0c2b7a90',
  identity,
  startedAt,
  page: `${folder}/exports/reports/export-all-1f0c2b7a90.html`,
}

/** A column in three currencies, as the service has them. */
const inCurrencies = (sum: string, byCurrency: Record<string, string>, empty = 0) => ({
  sum,
  byCurrency,
  empty,
  unreadable: 0,
})
const inOne = (sum: string, empty = 0, unreadable = 0) => ({ sum, empty, unreadable })

const totals: Readonly<Record<string, Sheet['totals']['columns']>> = {
  customers: {
    'customers.aggregations_sales': inCurrencies('4872166320.8150', {
      CLP: '4811900400',
      USD: '60265920.8150',
    }),
    'customers.aggregations_sales_current_period': inCurrencies('31877431.20', {
      CLP: '31409211',
      USD: '468220.20',
    }),
    'customers.aggregations_balance': inCurrencies('-1883.50', { CLP: '-1900', USD: '16.50' }, 128_000),
  },
  subscriptions: {
    'subscriptions.custom_change': inOne('24390999.640000', 40_112),
    'subscription_addon_rates.percentage': inOne('12200.00'),
  },
  plans: {
    'plans.amount': inCurrencies('141754371.05', { CLF: '48.61', CLP: '141718024', USD: '36298.44' }),
    'plan_tiers.amount': inCurrencies('230355482.54', { CLF: '62.52', CLP: '230288982', USD: '66438.02' }),
    'plan_tiers.quantity_from': inCurrencies('5600.0', { CLF: '1100.0', CLP: '2400.0', USD: '2100.0' }),
    'plan_tiers.quantity_to': inCurrencies('10661.5', { CLF: '2988.5', CLP: '4683.5', USD: '2989.5' }, 13),
  },
  retentions: {
    'retentions.amount': inOne('700074074075807769854.4693'),
    'retentions.exempt': inOne('0.00', 830_205),
    'retentions.tax': inOne('600074074075957038185.0394', 0, 3),
    'retentions.tax_percent': inOne('11506250.0', 598_700),
    'retentions.subtotal': inOne('500049382718064062686.8395'),
    'retentions.total': inOne('500061728396867529862.6795'),
    'retentions.discount': inOne('0', 1_204_551),
    'retention_lines.amount': inOne('1300222222224881614395.4187'),
    'retention_lines.quantity': inOne('7248901.000'),
    'retention_lines.tax': inOne('0', 2_407_988),
    'retention_lines.tax_percent': inOne('25886071.75'),
    'retention_lines.discount': inOne('2345.00', 1_938_660),
    'retention_lines.total': inOne('1400222222225008895581.0586'),
  },
}

const below: Readonly<Record<string, Sheet['tables']>> = {
  customers: [{ name: 'customer_contacts', rows: 129_044 }],
  subscriptions: ['lines', 'addons', 'addon_rates', 'references'].map((name, at) => ({
    name: `subscription_${name}`,
    rows: 82_110 - 13_001 * at,
  })),
  plans: [{ name: 'plan_tiers', rows: 90 }],
  retentions: [{ name: 'retention_lines', rows: 2_407_988 }],
}

/** Records that come faster each year, and by season. */
function monthsOf(records: number): Record<string, number> {
  const weights = Array.from({ length: 95 }, (_, at) => (at + 8) * (5 + Math.sin(at / 2)))
  const sum = weights.reduce((all, one) => all + one, 0)
  return Object.fromEntries(
    weights.map((weight, at) => [
      `${2019 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`,
      Math.round((records * weight) / sum),
    ]),
  )
}

/** What is published of a list, as the manifest says it. */
export function sheetFor(item: PublishedExport, more: Partial<Sheet> = {}): Sheet {
  const { resource, destination, verdict, reasons, scope, mode, completeThrough, records, where, manifest } =
    item
  const tables = [{ name: resource, rows: records }, ...(below[resource] ?? [])]
  const file = (path: string, rows?: number) => ({
    path,
    ...(rows !== undefined && { rows }),
    sha256: createHash('sha256').update(path).digest('hex'),
  })
  return {
    version: 1,
    run: exported.run,
    location: where,
    ...(manifest !== null && { manifestPath: manifest }),
    resource,
    destination,
    verdict,
    reasons,
    scope,
    completeThrough,
    ties: [],
    drift: {},
    unknownFields: {},
    absentFields: [],
    publishedAt: startedAt,
    workspace: identity.workspace,
    testMode: false,
    mode,
    filters: {},
    capped: false,
    excluded: [],
    hashed: [],
    ordering: 'created',
    windows: Math.ceil(records / 99),
    requests: Math.ceil(records / 99) + 3,
    startedAt,
    finishedAt: '2026-11-21T02:04:17.214Z',
    records,
    rejected: { rows: 0, files: [] },
    totals: {
      created: {
        oldest: '2019-01-01T00:30:27.551502-03:00',
        newest: '2026-11-20T22:58:47.490887-03:00',
        months: monthsOf(records),
      },
      columns: totals[resource] ?? {},
    },
    dialect: {
      delimiter: ',',
      decimal: '.',
      bom: false,
      formulaGuard: false,
      encoding: 'utf-8',
      lineEnd: '\n',
      null: 'an empty field; the empty string is ""',
    },
    duplicatesDropped: 684,
    linksRepaired: 0,
    countBefore: records,
    countAfter: records,
    clock: 'service',
    notes: [],
    versions: { connector: '0.1.0' },
    tables,
    files: [
      file('manifest.json'),
      ...(destination === 'csv' ? tables.map(({ name, rows }) => file(`${name}.csv`, rows)) : []),
      file('certificate.jsonl', Math.ceil(records / 99) + 2),
    ],
    ...more,
  }
}

/** The page of a run that published these. */
export function exportPage(
  verdict: ExportReport['verdict'],
  items: readonly (ExportedItem | (PublishedExport & { sheet: Partial<Sheet> }))[],
  more: Partial<ExportReport> = {},
): View {
  const sheets = items
    .filter(isPublished)
    .map((item) => [
      sheetOf(item.resource, item.destination),
      sheetFor(item, 'sheet' in item ? (item.sheet as Partial<Sheet>) : {}),
    ])
  return toExportPage({ ...exported, verdict, exports: [...items], ...more }, Object.fromEntries(sheets))
}

export const toCsv = (
  resource: PublishedExport['resource'],
  records: number,
  changes: Partial<PublishedExport> = {},
) =>
  list(resource, records, {
    destination: 'csv',
    new: null,
    changed: null,
    deleted: null,
    where: `${folder}/exports/${resource}/2026-11-21T02-00-03Z-export-all-1f0c2b7a90`,
    ...changes,
  })

const inWarehouse = {
  manifest: `${folder}/exports/duckdb/customers/2026-11-21T02-00-03Z-export-all-1f0c2b7a90/manifest.json`,
}
/** A page of each kind of export. */
export const exportPages: Readonly<Record<string, View>> = {
  export: exportPage('proven', [
    toCsv('customers', 128_412),
    toCsv('subscriptions', 41_077),
    toCsv('plans', 60),
    toCsv('retentions', 1_204_551),
  ]),
  'export-customers': exportPage('proven', [toCsv('customers', 128_412)]),
  'export-subscriptions': exportPage('proven', [toCsv('subscriptions', 41_077)]),
  'export-plans': exportPage('proven', [toCsv('plans', 60)]),
  'export-retentions': exportPage('proven', [toCsv('retentions', 1_204_551)]),
  'export-warehouses': exportPage(
    'unproven',
    [
      toCsv('customers', 318, { mode: 'incremental' }),
      list('customers', 318, {
        ...inWarehouse,
        mode: 'incremental',
        new: 300,
        changed: 18,
        verdict: 'unproven',
        completeThrough: null,
        reasons: [
          'the warehouse has no proven export of the whole list that reaches 2026-11-20T02:00:03.000Z, so records that have not changed may be missing there; the next export reads the whole list',
        ],
        scope: [
          'The records that changed since 2026-11-20T02:00:03.000Z are here. Others may be missing; it is unknown which.',
        ],
      }),
    ].map((item) => ({ ...item, sheet: { changedSince: '2026-11-20T02:00:03.000Z', ordering: 'updated' } })),
  ),
  'export-failed': exportPage(
    'failed',
    [
      list('customers', 128_412, { ...inWarehouse, new: 318, changed: 2_904, deleted: 12 }),
      {
        ...list('subscriptions', 41_070, {
          ...inWarehouse,
          verdict: 'unproven',
          completeThrough: null,
          reasons: ['The list changed faster than it could be read between 2026-11-20 14:02 and 14:05.'],
          scope: [
            '41070 records of subscriptions that the service listed during the read are here, each once.',
            'Other records may be missing; it is unknown which.',
            'Records without a usable id, in rejected.jsonl: 2.',
          ],
        }),
        sheet: { rejected: { rows: 2, files: [] } },
      },
      { resource: 'retentions', destination: 'duckdb', verdict: 'failed', reasons: ['The disk is full.'] },
    ],
    {
      next: [
        {
          text: 'once that is fixed, publish without reading again',
          command: 'npx connector run publish export-all-1f0c2b7a90 --to duckdb',
        },
      ],
    },
  ),
}
