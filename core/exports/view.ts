import { dirname, relative, sep } from 'node:path'
import { sentence, strong } from '../runs/view/sentence.ts'
import type { Problem, Table, View } from '../runs/view/view.ts'
import { type ExportedItem, type ExportReport, isPublished, withAllFields } from './report.ts'

const verdicts: Readonly<Record<ExportReport['verdict'], NonNullable<View['verdict']>>> = {
  proven: {
    word: 'proven',
    tone: 'good',
    meaning: 'Each read is proven; its manifest says of which records, and up to which moment.',
  },
  unproven: {
    word: 'unproven',
    tone: 'doubtful',
    meaning: 'Everything that was read is published, but some reads are not proven: records may be missing.',
  },
  stopped: {
    word: 'stopped',
    tone: 'neutral',
    meaning: 'A person stopped it. Nothing more is read or published.',
  },
  failed: { word: 'failed', tone: 'bad', meaning: 'Something was not published.' },
}

/** The view of a finished export, for its HTML page, the Temporal UI and the terminal. */
export function toExportView(report: ExportReport): View {
  const { run, exports, identity, startedAt, page, files: store } = report
  const published = exports.filter(isPublished)
  const folder = page === undefined ? undefined : dirname(page)
  return {
    title: `Export of ${[...new Set(exports.map(({ resource }) => resource))].join(', ')}`,
    run,
    ...(identity && { identity }),
    verdict: verdicts[report.verdict],
    problems: [...toProblems(exports), ...toMissing(report)],
    next: report.next ?? [],
    controls:
      report.verdict === 'proven'
        ? []
        : [sentence`In the Temporal UI, ${strong('Start Workflow Like This One')} runs it again.`],
    tables: [toTable(exports)],
    facts: [
      ...(startedAt === undefined ? [] : [{ name: 'started', value: { time: startedAt } }]),
      ...published
        // A read says the same of itself in each of its destinations.
        .filter(({ resource }, at) => published.findIndex((one) => one.resource === resource) === at)
        .flatMap(({ resource, scope, completeThrough }) => [
          ...(completeThrough === null
            ? []
            : [{ name: `${resource} complete through`, value: { time: completeThrough } }]),
          { name: resource, value: scope.join(' ') },
        ]),
    ],
    ...(folder !== undefined && {
      folder,
      page,
      files: published.flatMap(({ manifest: path, resource, destination }) =>
        path === null
          ? []
          : [{ name: toLink({ folder, store, path }), about: `${resource}, ${destination}` }],
      ),
    }),
  }
}

/** A link from the run's page to a manifest; in a store, from the page's copy there. */
const toLink = ({ folder, store, path }: { folder: string; store: string | undefined; path: string }) =>
  store !== undefined && path.startsWith(`${store}/exports/`)
    ? `../${path.slice(`${store}/exports/`.length)}`
    : relative(folder, path).split(sep).join('/')

/** The column of each field, in the order of the table. */
const columns = {
  resource: 'resource',
  destination: 'to',
  verdict: 'verdict',
  records: 'records',
  new: 'new',
  changed: 'changed',
  deleted: 'deleted',
  where: 'where',
} as const

/** The table of exports. Columns that are empty in every row are omitted. */
function toTable(exports: readonly ExportedItem[]): Table {
  const items = exports.map(withAllFields)
  const fields = (Object.keys(columns) as (keyof typeof columns)[]).filter((field) =>
    items.some((item) => item[field] !== null),
  )
  return {
    title: '',
    head: fields.map((field) => columns[field]),
    rows: items.map((item) => fields.map((field) => item[field] ?? '')),
  }
}

function toProblems(exports: readonly ExportedItem[]): Problem[] {
  const texts = exports.flatMap((item) => {
    const { resource, destination, verdict, reasons } = item
    if (isPublished(item)) return [...reasons, ...item.warnings].map((one) => `${resource}: ${one}`)
    const name = destination === null ? resource : `${resource} to ${destination}`
    return [`${name}: ${verdict === 'failed' ? reasons.join(' ') : 'stopped before it was published.'}`]
  })
  // A read has the same reasons in each of its destinations.
  return [...new Set(texts)].map((text) => ({ text }))
}

function toMissing({ missing }: ExportReport): Problem[] {
  if (missing === undefined) return []
  const { count, first, file } = missing
  const ids = count === 1 ? '1 id does not exist' : `${count} ids do not exist`
  return [{ text: `${ids}: ${first.join(', ')}${count > first.length ? ', ...' : ''} (${file})` }]
}
