import { dirname, relative, sep } from 'node:path'
import { isDocumentName } from '../billing/resources/lists.ts'
import { isFileDestination } from '../destinations/names.ts'
import { formatCount, formatCountOf } from '../runs/view/format.ts'
import { connector, shell } from '../runs/view/shell.ts'
import type { Fact, NextStep, Sheet as PageSheet, Table, View } from '../runs/view/view.ts'
import { type ExportReport, isPublished } from './report.ts'
import { type Sheet, sheetOf, type Sheets } from './sheet.ts'
import { columns, toExportView, toTable, verdicts } from './view.ts'

/** By their names in docs/guarantees.md. */
const premises = {
  created: 'every record has a created, which does not change',
  slice: 'a response is one slice of the list, as it was at one moment',
  lag: 'a record becomes visible within the lag',
  date: 'no cache rewrites the Date of a response without an Age',
  status: 'a list hides records by their status alone',
  count: 'a list without records, or with records of one time alone, counts all of them',
}

/** The page of a finished export: for each list, on one sheet, all that an auditor asks for. */
export function toExportPage(report: ExportReport, sheets: Sheets): View {
  const { exports, page, files: store } = report
  const folder = dirname(page ?? '')
  const { where: _, resource, ...others } = columns
  const view = toExportView(report)
  const lists = Map.groupBy(
    exports
      .filter(isPublished)
      .flatMap(({ resource: list, destination }) => sheets[sheetOf(list, destination)] ?? []),
    (sheet) => sheet.resource,
  )
  return {
    ...view,
    pageTables: [
      toTable(exports, {
        [exports.some((item) => isDocumentName(item.resource)) ? 'documents' : 'list']: resource,
        ...others,
        'complete through': ({ completeThrough: time }) => time && { time },
        manifest: ({ manifest }) =>
          manifest && { text: 'manifest.json', href: toLink({ folder, store, path: manifest }) },
      }),
    ],
    // The sheets say when their reads began.
    facts: (view.facts ?? []).filter(({ name }) => name !== 'Started' || lists.size === 0),
    sheets: Array.from(lists.values(), (of) => toPageSheet(report, of)),
    checks: toChecks(report.run, [...lists.values()].flat()),
    evidence: Array.from(lists, ([name, of]) => ({ name, value: toMachinery(of) })),
  }
}

/** A link from the run's page to a manifest; in a store, from the page's copy there. */
const toLink = ({ folder, store, path }: { folder: string; store: string | undefined; path: string }) =>
  store !== undefined && path.startsWith(`${store}/exports/`)
    ? `../${path.slice(`${store}/exports/`.length)}`
    : relative(folder, path).split(sep).join('/')

/** A list in all of its destinations. They have the same read. */
type Of = readonly Sheet[]

function toPageSheet({ identity }: ExportReport, of: Of): PageSheet {
  const [sheet] = of as [Sheet]
  const { resource, workspace, testMode, startedAt, finishedAt, records, rejected, totals, tables } = sheet
  const { created } = totals
  const from = identity === undefined ? '' : ` at ${identity.baseUrl}`
  const below = tables.slice(1).map(({ name, rows }) => `${formatCountOf(rows, 'rows')} of ${name}`)
  const withBelow = below.length === 0 ? '' : `, with ${below.join(', ')}`
  return {
    title: resource,
    facts: [
      { name: 'Source', value: `${resource} of ${workspace}, ${testMode ? 'test' : 'live'} data${from}` },
      { name: 'Query', value: toQuery(sheet) },
      { name: 'Read', value: [{ time: startedAt }, 'to', { time: finishedAt }] },
      ...toCompleteness(of),
      { name: 'Records', value: `${formatCount(records)}${withBelow}` },
      ...(created === undefined
        ? []
        : [{ name: 'Created', value: [{ time: created.oldest }, 'to', { time: created.newest }] }]),
      ...(rejected.rows === 0
        ? []
        : [
            {
              name: 'Rejected',
              value: `${formatCount(rejected.rows)}, kept beside the records: no row could hold them`,
            },
          ]),
      ...of.map(({ destination, location }) => ({ name: `Published to ${destination}`, value: location })),
    ],
    ...toBars(created?.months),
    tables: [toTotals(sheet, toTitle(of)), toFiles(of)],
  }
}

/** Of a longer time, the years are shown: a page has no room for more bars. */
const mostMonths = 120
const mostYears = 200

/** The records by month, or by year, also those without one. */
function toBars(counts: Readonly<Record<string, number>> = {}): Pick<PageSheet, 'bars'> {
  const months = Object.keys(counts).toSorted()
  const [first, last] = [months[0], months.at(-1)]
  if (first === undefined || last === undefined) return {}
  const [from, to] = [monthsSince(first), monthsSince(last)]
  const isLong = to - from >= mostMonths
  const sums = new Map<string, number>()
  for (let month = from; month <= to; month++) {
    const name = `${String(Math.floor(month / 12)).padStart(4, '0')}-${String((month % 12) + 1).padStart(2, '0')}`
    const place = isLong ? name.slice(0, 4) : name
    sums.set(place, (sums.get(place) ?? 0) + (counts[name] ?? 0))
  }
  // One bar says no more than the facts above it.
  if (sums.size > mostYears || sums.size === 1) return {}
  const title = `Records by ${isLong ? 'year' : 'month'} of created`
  return { bars: { title, of: Array.from(sums, ([name, value]) => ({ name, value })) } }
}

/** The number of a month: `0001-01` is 12. */
const monthsSince = (month: string): number => Number(month.slice(0, 4)) * 12 + Number(month.slice(5)) - 1

function toQuery(sheet: Sheet): string {
  const {
    mode,
    filters,
    capped,
    ordering,
    windows,
    requests,
    changedSince,
    excluded,
    hashed,
    asked = 0,
  } = sheet
  const asks = formatCountOf(requests, 'requests')
  const without = [
    ...(excluded.length > 0 ? [`without ${excluded.join(', ')}`] : []),
    ...(hashed.length > 0 ? [`${hashed.join(', ')} hashed`] : []),
  ]
  if (mode === 'byId')
    return [`${formatCountOf(asked, 'documents')} by id, in ${asks}`, ...without].join('; ')
  const matching = Object.entries(filters).map(([name, value]) => `${name} = ${value}`)
  return [
    `${changedSince === undefined ? 'all records' : `what changed since ${changedSince}`}, by ${ordering}`,
    matching.length > 0 ? `where ${matching.join(' and ')}` : 'no filters',
    ...without,
    `${formatCountOf(windows, 'windows')} in ${asks}${capped ? ', then its limit ended the read' : ''}`,
  ].join('; ')
}

/** The verdict with its meaning; of each destination where they differ. */
function toCompleteness(of: Of): Fact[] {
  const said = Map.groupBy(of, ({ verdict, scope }) => [verdict, ...scope].join(' '))
  return Array.from(said.values(), (alike): Fact => {
    const { verdict, scope, mode } = alike[0]!
    const places = alike.map(({ destination }) => destination).join(', ')
    return {
      name: said.size === 1 ? 'Completeness' : `Completeness in ${places}`,
      value: [
        { text: verdict, tone: verdicts[verdict].tone },
        ...scope,
        ...(verdict === 'proven' && mode !== 'byId'
          ? [`Premises: ${Object.keys(premises).join(', ')} (below).`]
          : []),
      ],
    }
  })
}

/** Of more currencies, the manifest has the rest. */
const mostCurrencies = 12

const currencies: Readonly<Record<string, string>> = { '': 'none', other: 'other' }

/** Nobody may take the sums of some records for those of all. */
function toTitle(of: Of): string {
  const [sheet] = of as [Sheet]
  if (of.every(({ verdict }) => verdict === 'unproven'))
    return 'Totals of what was read: records may be missing'
  if (sheet.mode === 'byId') return 'Totals of these documents'
  if (sheet.mode === 'incremental') return 'Totals of the records that changed'
  return Object.keys(sheet.filters).length > 0 ? 'Totals of the records that match' : 'Totals'
}

/** The sums of each decimal column, each currency by itself: together they would mean nothing. */
function toTotals({ totals }: Sheet, title: string): Table {
  const rows = Object.entries(totals.columns).flatMap(([column, { sum, empty, unreadable, byCurrency }]) => {
    const sums = Object.entries(byCurrency ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
    const shown = sums.length === 0 ? [['', sum] as const] : sums.slice(0, mostCurrencies)
    const more = sums.length - mostCurrencies
    return [
      ...shown.map(([currency, amount], at) => [
        at === 0 ? column : '',
        byCurrency === undefined || sums.length === 0 ? '' : (currencies[currency] ?? currency),
        { amount },
        ...(at === 0 ? [empty, unreadable] : ['', '']),
      ]),
      ...(more > 0 ? [['', `${more} more, in the manifest`, '', '', '']] : []),
    ]
  })
  const hasCurrency = Object.values(totals.columns).some(({ byCurrency }) => byCurrency !== undefined)
  const head = ['column', 'currency', 'sum', 'empty', 'unreadable']
  const kept = <T>(cells: readonly T[]) => cells.filter((_, at) => at !== 1 || hasCurrency)
  return { title, head: kept(head), rows: rows.map(kept) }
}

function toFiles(of: Of): Table {
  const withFiles = of.filter(({ files }) => files.length > 0)
  const isOne = withFiles.length < 2
  return {
    title: 'Files',
    head: [...(isOne ? [] : ['in']), 'file', 'rows', 'SHA-256'],
    rows: withFiles.flatMap(({ destination, files }) =>
      files.map(({ path, rows, sha256 }) => [...(isOne ? [] : [destination]), path, rows ?? '', sha256]),
    ),
  }
}

/** How others check the exports, from their folders alone. */
function toChecks(run: string, of: Of): NextStep[] {
  const files = of.filter(({ manifestPath }) => manifestPath !== undefined)
  const hasRows = of.some(({ destination }) => isFileDestination(destination))
  const isCertified = of.some(({ mode }) => mode !== 'byId')
  const isPlain = ({ destination, dialect, mode, location }: Sheet) =>
    destination === 'csv' && dialect?.formulaGuard === false && mode !== 'byId' && !location.startsWith('s3:')
  const steps = [
    {
      text: `the files against the manifest${isCertified ? ', and the verdict against the certificate' : ''}`,
      commands: files.map(({ manifestPath = '' }) => connector`verify ${dirname(manifestPath)}`),
    },
    {
      text: 'the same in Python, with no code of the connector',
      commands: files
        .filter(isPlain)
        .map(({ location }) => shell`python3 scripts/check-certificate.py ${location}`),
    },
    {
      text: 'a warehouse keeps no files of its rows; to have them',
      commands: hasRows || of.length === 0 ? [] : [connector`run publish ${run} --to csv`],
    },
  ]
  const isProven = of.some(({ verdict, mode }) => verdict === 'proven' && mode !== 'byId')
  const named = Object.entries(premises).map(([name, text]) => `${name}: ${text}`)
  return [
    ...steps.flatMap(({ text, commands }) =>
      commands.length === 0 ? [] : [{ text, command: commands.join('\n') }],
    ),
    ...(isProven ? [{ text: `premises of the proof (docs/guarantees.md): ${named.join('; ')}` }] : []),
  ]
}

/** What only its operators ask about a read. */
function toMachinery(of: Of): string {
  const [sheet] = of as [Sheet]
  const { duplicatesDropped, linksRepaired, countBefore, countAfter, clock, versions, notes = [] } = sheet
  const counted = Object.entries({ before: countBefore, after: countAfter }).flatMap(([when, count]) =>
    count === null ? [] : [`${formatCount(count)} ${when}`],
  )
  const isComplete = of.some(({ completeThrough }) => completeThrough !== null)
  return [
    `records dropped because they came again: ${formatCount(duplicatesDropped)}`,
    `links between windows repaired: ${formatCount(linksRepaired)}`,
    ...(counted.length === 0 ? [] : [`records by the service's own count: ${counted.join(', ')}`]),
    ...(isComplete
      ? [`"complete through" is by the clock of the ${clock === 'service' ? clock : 'worker'}`]
      : []),
    ...notes,
    ...Object.entries(versions).map(([name, version]) => `${name} ${version}`),
  ].join('; ')
}
