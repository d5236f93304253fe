import { dirname } from 'node:path'
import { type DanglingReason, danglingReasons } from '../destinations/manifest.ts'
import { type Fact, type Problem, sentence, strong, type Table, type View } from '../runs/view/view.ts'
import { type Cell, formatCount, formatCountOf } from '../runs/view/format.ts'
import {
  type ExportedItem,
  type ExportReport,
  type PublishedExport,
  countLists,
  isPublished,
  withAllFields,
} from './report.ts'

export const verdicts: Readonly<
  Record<ExportReport['verdict'], Omit<NonNullable<View['verdict']>, 'headline'>>
> = {
  proven: {
    word: 'proven',
    tone: 'good',
    meaning: 'Each read proved that it skipped no record and has none twice.',
  },
  unproven: {
    word: 'unproven',
    tone: 'doubtful',
    meaning: 'Everything that was read is published. Where a read is not proven, records may be missing.',
  },
  stopped: {
    word: 'stopped',
    tone: 'neutral',
    meaning: 'A person stopped it before everything was read and published.',
  },
  failed: { word: 'failed', tone: 'bad', meaning: 'Not everything was published.' },
}

/** The view of a finished export, for its HTML page, the Temporal UI and the terminal. */
export function toExportView(report: ExportReport): View {
  const { run, exports, identity, startedAt, page } = report
  const published = exports.filter(isPublished)
  return {
    title: `Export of ${[...new Set(exports.map(({ resource }) => resource))].join(', ')}`,
    run,
    ...(identity && { identity }),
    verdict: { ...verdicts[report.verdict], headline: toHeadline(report) },
    problems: [...toProblems(exports), ...toMissing(report)],
    notices: [
      ...inEach(published.filter((item) => !isHeldBack(item)).flatMap(toWarnings)),
      ...toDangling(report),
    ],
    next: report.next ?? [],
    controls:
      report.verdict === 'proven'
        ? []
        : [sentence`In the Temporal UI, ${strong('Start Workflow Like This One')} runs it again.`],
    tables: [toTable(exports, columns)],
    facts: [
      ...(startedAt === undefined ? [] : [{ name: 'Started', value: { time: startedAt } }]),
      ...toJoins(report),
    ],
    ...(page !== undefined && { folder: dirname(page), page }),
  }
}

function toHeadline({ exports, summary }: ExportReport): string {
  // Stopped before it was known what to read.
  if (exports.length === 0) return summary
  const { lists, complete } = countLists(exports)
  if (lists !== 1) return `${complete} of ${lists} lists ${complete === 1 ? 'is' : 'are'} complete`
  const item = exports.find(isPublished)
  return item === undefined
    ? `${exports[0]!.resource} were not published`
    : formatCountOf(item.records, item.resource)
}

type Columns = Readonly<Record<string, (item: ReturnType<typeof withAllFields>) => Cell | null>>

export const columns = {
  resource: ({ resource }) => resource,
  to: ({ destination }) => destination,
  verdict: ({ verdict }) => ({ text: verdict, tone: verdicts[verdict].tone }),
  records: ({ records }) => records,
  new: (item) => item.new,
  changed: ({ changed }) => changed,
  deleted: ({ deleted }) => deleted,
  where: ({ where }) => where,
} satisfies Columns

/** The table of exports. Columns that are empty in every row are omitted. */
export function toTable(exports: readonly ExportedItem[], of: Columns): Table {
  const items = exports.map(withAllFields)
  const shown = Object.entries(of).filter(([, cellOf]) => items.some((item) => cellOf(item) !== null))
  return {
    title: '',
    head: shown.map(([name]) => name),
    rows: items.map((item) => shown.map(([, cellOf]) => cellOf(item) ?? '')),
  }
}

function toProblems(exports: readonly ExportedItem[]): Problem[] {
  const texts = exports.flatMap((item) => {
    const { resource, destination, verdict, reasons } = item
    if (isPublished(item))
      return [...reasons.map((one) => `${resource}: ${one}`), ...(isHeldBack(item) ? toWarnings(item) : [])]
    const name = destination === null ? resource : `${resource} to ${destination}`
    return [`${name}: ${verdict === 'failed' ? reasons.join(' ') : 'stopped before it was published.'}`]
  })
  return inEach(texts)
}

/** How many ids of a field are named. */
const mostShown = 10

/** Records that are named, and not here: nothing is wrong with the export, and nobody has anything to do. */
function toDangling({ references = [] }: ExportReport): Problem[] {
  return references.flatMap(({ field, to, dangling }) => {
    const { ids, reasons, first } = dangling
    if (ids === 0) return []
    const why = Object.entries(reasons).map(
      ([reason, count]) => `${formatCount(count)} ${danglingReasons[reason as DanglingReason]}`,
    )
    const text = `${to} that ${field} names and this export lacks: ${formatCount(ids)} (${why.join(', ')}).`
    const details = first
      .slice(0, mostShown)
      .map(({ id, from, reason }) => `${id} (in ${from}): ${danglingReasons[reason]}`)
    const more = ids - details.length
    return [{ text, details: more > 0 ? [...details, `and ${formatCount(more)} more`] : details }]
  })
}

/** Whether the tables join: said of a list only where it holds of each of its fields. */
function toJoins({ references = [], exports }: ExportReport): Fact[] {
  const isProven = exports.every(({ verdict }) => verdict === 'proven')
  const lists = Map.groupBy(references, ({ field }) => field.split('.', 1)[0]!)
  return [...lists].flatMap(([list, fields]) => {
    const names = fields.map(({ field }) => field.split('.').at(-1)).join(' and ')
    if (isProven && fields.every(({ complete }) => complete))
      return [{ name: 'References', value: `every ${list.replace(/s$/, '')}'s ${names} is in this export` }]
    return fields.map(({ field, checked, dangling }) => {
      const found =
        typeof checked === 'string'
          ? `not checked: ${checked}`
          : `${formatCount(checked)} checked, ${formatCount(dangling.ids)} dangling`
      return { name: `References of ${field}`, value: found }
    })
  })
}

/** Whether a person has to say that deletes are right; what else a warning says changes nothing in the data. */
const isHeldBack = ({ heldBack }: PublishedExport): boolean => heldBack > 0

const toWarnings = ({ resource, warnings }: PublishedExport): string[] =>
  warnings.map((one) => `${resource}: ${one}`)

/** A read has the same reasons and warnings in each of its destinations. */
const inEach = (texts: readonly string[]): Problem[] => [...new Set(texts)].map((text) => ({ text }))

function toMissing({ missing }: ExportReport): Problem[] {
  if (missing === undefined) return []
  const { count, first, file } = missing
  const ids = count === 1 ? '1 id does not exist' : `${count} ids do not exist`
  return [
    {
      text: `${ids}: ${first.join(', ')}${count > first.length ? ', ...' : ''}${file === null ? '' : ` (${file})`}`,
    },
  ]
}
