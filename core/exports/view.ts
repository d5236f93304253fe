import { dirname, relative, sep } from 'node:path'
import { sentence, strong } from '../runs/view/sentence.ts'
import type { Problem, Table, View } from '../runs/view/view.ts'
import { type ExportReport, publishedOf, type ResourceResult } from './report.ts'

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
  const published = exports.flatMap(publishedOf)
  const folder = page === undefined ? undefined : dirname(page)
  return {
    title: `Export of ${exports.map(({ resource }) => resource).join(', ')}`,
    run,
    ...(identity && { identity }),
    verdict: verdicts[report.verdict],
    problems: [...exports.flatMap(toProblems), ...toMissing(report)],
    next: report.next ?? [],
    controls:
      report.verdict === 'proven'
        ? []
        : [sentence`In the Temporal UI, ${strong('Start Workflow Like This One')} runs it again.`],
    tables: [toTable(exports)],
    ...(startedAt !== undefined && { facts: [{ name: 'started', value: { time: startedAt } }] }),
    ...(folder !== undefined && {
      folder,
      page,
      files: published.flatMap(({ manifest: path, resource, destination }) =>
        path === '' ? [] : [{ name: toLink({ folder, store, path }), about: `${resource}, ${destination}` }],
      ),
    }),
  }
}

/** A link from the run's page to a manifest; in a store, from the page's copy there. */
const toLink = ({ folder, store, path }: { folder: string; store: string | undefined; path: string }) =>
  store !== undefined && path.startsWith(`${store}/exports/`)
    ? `../${path.slice(`${store}/exports/`.length)}`
    : relative(folder, path).split(sep).join('/')

const columns = ['resource', 'to', 'verdict', 'records', 'new', 'changed', 'deleted', 'where'] as const

type Cells = Readonly<Record<(typeof columns)[number], string | number>>

function toCells(result: ResourceResult): Cells[] {
  const { resource } = result
  const without = (verdict: 'failed' | 'stopped', to = ''): Cells => ({
    resource,
    to,
    verdict,
    records: '',
    new: '',
    changed: '',
    deleted: '',
    where: '',
  })
  if ('error' in result) return [without('failed')]
  if ('stopped' in result) return [without('stopped')]
  return [
    ...result.published.map(({ destination, verdict, records, deleted, where, ...counts }) => ({
      resource,
      to: destination,
      verdict,
      records,
      new: counts.new ?? '',
      changed: counts.changed ?? '',
      deleted: deleted ?? '',
      where,
    })),
    ...(result.failed ?? []).map(({ destination }) => without('failed', destination)),
    ...(result.unpublished ?? []).map((destination) => without('stopped', destination)),
  ]
}

/** The table of resources. Columns that are empty in every row are omitted. */
function toTable(exports: readonly ResourceResult[]): Table {
  const rows = exports.flatMap(toCells)
  const head = columns.filter((name) => rows.some((row) => row[name] !== ''))
  return { title: '', head, rows: rows.map((row) => head.map((name) => row[name])) }
}

function toProblems(result: ResourceResult): Problem[] {
  const { resource } = result
  if ('error' in result) return [{ text: `${resource}: ${result.error}` }]
  if ('stopped' in result) return [{ text: `${resource}: stopped before it was published.` }]
  return [
    ...(result.failed ?? []).map(({ destination, error }) => ({
      text: `${resource} to ${destination}: ${error}`,
    })),
    ...(result.unpublished ?? []).map((destination) => ({
      text: `${resource} to ${destination}: stopped before it was published.`,
    })),
    // A read has the same reasons in each of its destinations, so duplicates are dropped.
    ...[...new Set(result.published.flatMap(({ reasons, warnings }) => [...reasons, ...warnings]))].map(
      (sentence) => ({ text: `${resource}: ${sentence}` }),
    ),
  ]
}

function toMissing({ missing }: ExportReport): Problem[] {
  if (missing === undefined) return []
  const { count, first, file } = missing
  const ids = count === 1 ? '1 id does not exist' : `${count} ids do not exist`
  return [{ text: `${ids}: ${first.join(', ')}${count > first.length ? ', ...' : ''} (${file})` }]
}
