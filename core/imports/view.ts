import { basename, join } from 'node:path'
import { type ChangesReport, type FullChangesReport, toChangesView } from '../changes/view.ts'
import type { EndedNote } from '../runs/run-notes.ts'
import { inputCommand } from '../runs/inputs.ts'
import { countLabels, places, type ReportCounts, sumOf } from '../runs/view/counts.ts'
import { formatCount } from '../runs/view/format.ts'
import {
  type Count,
  filled,
  type NextStep,
  type Problem,
  sentence,
  strong,
  type Table,
  type View,
} from '../runs/view/view.ts'
import { connector } from '../runs/view/shell.ts'
import type { FileCheck } from './check.ts'
import { few } from './errors.ts'
import { type ImportInput, importInput, type ImportPlan, runFiles } from './input.ts'
import type { Mapping } from './mapping/mapping.ts'
import type { AuditNote, Origin } from './run-files.ts'
import { type Receipt, toReceiptTables } from './totals.ts'

/** The report of an import. */
export interface ImportReport extends ChangesReport {
  audit: AuditNote | null
  /** The first row numbers not done, by state; the files have all of them. */
  rows: Partial<Record<keyof ReportCounts, number[]>>
}

/** The report as a workflow returns it: without the findings, which name fields and values. */
export type ImportResult = Omit<ImportReport, 'audit'> & { audit: Omit<AuditNote, 'first'> | null }

/** The states that need attention, and the sheet with all rows of each. */
const sheetOf = { rejected: runFiles.rejected, parked: runFiles.parked, unknown: runFiles.results } as const

export const problems = Object.keys(sheetOf) as (keyof typeof sheetOf)[]
export const isProblem = (place: keyof ReportCounts): place is keyof typeof sheetOf => place in sheetOf

/** The complete report on disk, with decisions and the request. */
export interface FullReport extends ImportReport, FullChangesReport {
  kind: string
  file: string
  /** How many changes of the file are valid and invalid, and how its columns are read. */
  check?: Pick<FileCheck, 'valid' | 'invalid'> & {
    columns: Pick<FileCheck['columns'][number], 'column' | 'field'>[]
  }
  sheets?: Mapping['sheets']
  totals: Receipt | null
}

const files = {
  results: 'every row with its outcome',
  rejected: 'rejected rows, to be fixed and imported again',
  parked: 'rows that need a person, with where to look',
} as const

/** The view of an import; see `toChangesView`. */
export function toImportView(report: FullReport): View {
  const { kind, counts, totals, check } = report
  const isDryRun = report.verdict === 'dryRun'
  const first = isDryRun ? toInvalidRows(report) : toFirstRows(report)
  const receipt = toReceiptTables(totals)
  const written = (Object.keys(files) as (keyof typeof files)[]).filter((name) => name in report.files)
  const isLeft = counts.staged + counts.notTried + counts.unknown > 0
  return toChangesView(report, {
    title: `Import of ${kind}`,
    unit: 'rows',
    headline:
      isDryRun && check
        ? `${formatCount(check.valid)} of ${formatCount(check.valid + check.invalid)} ${kind} can be imported`
        : `${formatCount(counts.done)} of ${formatCount(sumOf(counts))} ${kind} are done`,
    ...(isDryRun && check && { counts: toFileCounts(check) }),
    meanings: {
      dryRun: 'The file was checked. Nothing was sent, and nothing is proven.',
      proven: `The outcome of every row is known.${counts.rejected === 0 ? '' : ' Rejected rows are not in the service.'}`,
      unproven:
        'Some rows are in doubt, were decided by a person, or were not done. Nothing is ever sent twice.',
    },
    problems: toProblems(report),
    covered: openPlaces(report).map((place) => `${counts[place]} ${countLabels[place]}`),
    controls: isLeft
      ? [
          sentence`In the Temporal UI, ${strong('Start Workflow Like This One')} resumes with the remaining rows.`,
        ]
      : [],
    // The command that checks a file has shown its invalid rows.
    tables: [...(isDryRun ? [] : first), ...receipt],
    pageTables: [...first, ...receipt, ...(isDryRun ? toColumns(check) : [])],
    ...(!isDryRun &&
      check && { evidence: check.columns.map(({ column, field }) => ({ name: column, value: field })) }),
    facts: [
      { name: 'File', value: basename(report.file) },
      ...sheetsNotRead(report.sheets).map((value) => ({ name: 'Sheet', value })),
      ...(report.verdict === 'proven' ? [{ name: 'Proven by', value: evidence[report.by] }] : []),
    ],
    files: written.map((name) => ({ name: runFiles[name], about: files[name] })),
  })
}

const evidence = {
  audit: 'comparing the list of the service with the file, row by row',
  answer: 'the answers of the service',
  lookup: 'looking up each change',
} as const

const toFileCounts = ({ valid, invalid }: NonNullable<FullReport['check']>): Count[] =>
  [
    { name: 'valid', value: valid, tone: 'good' } as const,
    { name: 'invalid', value: invalid, tone: 'bad' } as const,
  ].filter(({ value }) => value > 0)

function toColumns(check: FullReport['check']): Table[] {
  const rows = check?.columns.map(({ column, field }) => [column, field]) ?? []
  return filled({ title: 'Columns', head: ['in the sheet', 'in the service'], rows })
}

/** A sentence for each workbook that has more sheets than the one that is read. */
export const sheetsNotRead = (sheets: Mapping['sheets'] = []): string[] =>
  sheets.flatMap(({ role, file, read, unread }) => {
    if (unread.length === 0) return []
    const others = `${unread.slice(0, -1).join(', ')}${unread.length === 1 ? '' : ' and '}${unread.at(-1)}`
    const advice = role === 'file' ? 'Choose one with --sheet.' : 'Put the right one first.'
    return [
      `${file}: the sheet ${read} is read; ${others} ${unread.length === 1 ? 'is' : 'are'} not. ${advice}`,
    ]
  })

const openPlaces = ({ rows }: FullReport) =>
  places.filter((place) => place !== 'done' && place !== 'skipped' && rows[place] !== undefined)

function toProblems(report: FullReport): Problem[] {
  const { rows, counts, audit, outcomes } = report
  const open = openPlaces(report)
  const found = audit?.first.map(({ row }) => row) ?? []
  const { storedDifferently = 0, doneOtherwise = 0 } = outcomes
  return [
    ...open.map((place) => ({
      text: `${counts[place]} ${countLabels[place]}: ${counts[place] === 1 ? 'row' : 'rows'} ${listRows(rows[place] ?? [], counts[place])}.`,
    })),
    ...(storedDifferently + doneOtherwise === 0
      ? []
      : [{ text: `${runFiles.results} says which row differs, and how.` }]),
    ...(found.length === 0
      ? []
      : [
          {
            text: `The service's list differs from the file in rows ${listRows(found)}; see ${runFiles.findings}.`,
          },
        ]),
  ]
}

const toInvalidRows = ({ first }: FullReport): Table[] =>
  filled({
    title: 'Invalid rows',
    head: ['row', 'reason'],
    rows: first.map(({ row, message }) => [String(row), message]),
  })

/** The first rows of each state that needs attention, and why. */
function toFirstRows({ first, counts }: FullReport): Table[] {
  const rows = problems.flatMap((state) => {
    const shown = first.filter((one) => one.state === state)
    const more = counts[state] - shown.length
    return [
      ...shown.map(({ row, message }) => [String(row), countLabels[state], message]),
      // None are listed of rows that a restored ledger lacks, and no file has them.
      ...(shown.length > 0 && more > 0
        ? [['', countLabels[state], `and ${more} more in ${sheetOf[state]}`]]
        : []),
    ]
  })
  return filled({ title: 'Rows not done', head: ['row', 'state', 'reason'], rows })
}

const listRows = (rows: readonly number[], all?: number) => few(rows, { most: 50, of: all })

/** The parts of a command for the rows of an import. */
interface Source {
  plan: ImportPlan
  dataDir: string
  /** The person's own file. Default: the stored copy, which identifies the same run. */
  origin?: Origin | undefined
}

/** The next steps after an import, or during one, with their commands filled in. */
export function importNextSteps({
  ended,
  counts,
  outcomes,
  parkedRow,
  message,
  ...source
}: Source & {
  ended: EndedNote | undefined
  counts: ReportCounts
  outcomes: Readonly<Record<string, number>>
  /** The first parked row. */
  parkedRow: number | undefined
  /** What the service said of the first row that was not done. */
  message?: string | undefined
}): NextStep[] {
  const { plan, dataDir } = source
  const { run } = plan
  const path = (name: string) => join(dataDir, plan.folder, name)
  if (plan.dryRun) return [{ text: 'to import it', command: sameCommand(source) }]
  if (ended === undefined) return [{ text: 'to follow the run', command: connector`run watch ${run}` }]
  if (ended.how === 'refused')
    return [{ text: 'fix the file, then import it again', command: sameCommand(source) }]
  const { staged, notTried, unknown, rejected, parked } = counts
  const { repeatable = 0 } = outcomes
  // A finished run has looked up everything that it sent, so only a ledger from a backup has other unknown rows of it.
  const lost = ended.how === 'finished' ? unknown - repeatable : 0
  const left = staged + notTried + unknown - lost
  // The others are like those that failed, and in the same file: the same command would do the same again.
  const isCanary = ended.canary === true && left > 0
  const steps: NextStep[] = []
  const add = (text: string, command: string) => void steps.push({ text, command })
  if (isCanary)
    add(
      `the rows that went first all failed${message === undefined ? '' : ` (${message})`}: correct the file, then import it again`,
      sameCommand(source),
    )
  if (rejected > 0 && !isCanary) {
    const file = path(runFiles.rejected)
    add(
      `${rejected} ${rows(rejected)} to fix: open ${file}, then`,
      // A result sheet begins with its header, whatever its file began with.
      importCommand(source, file, {}, (option) => !ofWholeFile.has(option)),
    )
  }
  if (parked > 0)
    add(
      `${parked} parked ${rows(parked)}: look in the service as ${path(runFiles.parked)} says, then (or --absent, --drop)`,
      `${connector`run resolve ${run} --rows ${parkedRow ?? '<row>'}`} --exists <id> --why "..."`,
    )
  if (lost > 0)
    add(
      `The ledger is older than this run. To look up ${lost} unknown ${rows(lost)}: stop the worker, repair the ledger as here, start the worker, and run the import again`,
      connector`state repair`,
    )
  if (left > 0 && !isCanary)
    if (ended.how === 'finished')
      add(`to send the remaining ${left}`, sameCommand({ ...source, done: 'skip' }))
    else add(`to resume with the remaining ${left}`, sameCommand(source))
  return steps
}

const rows = (count: number) => (count === 1 ? 'row' : 'rows')

/** The command that belongs to the same run: it resumes it, or shows how it ended. */
export function sameCommand(source: Source & { done?: 'skip' }): string {
  const { plan, dataDir, origin, done = plan.done } = source
  const { onInvalid, existing, sendAgain } = plan
  const file = origin?.file ?? join(dataDir, plan.file)
  return importCommand(source, file, { onInvalid, done, existing, sendAgain })
}

/** These options say where the rows are in a file. */
const ofWholeFile: ReadonlySet<string> = new Set(['sheet', 'header-row', 'skip-rows'])

function importCommand(
  { plan, dataDir, origin }: Source,
  file: string,
  input: Partial<ImportInput>,
  isUsed: (option: string) => boolean = () => true,
): string {
  const reading = origin?.reading.filter(([option]) => isUsed(option)) ?? []
  const words = reading.flatMap(([option, ...value]) => [`--${option}`, ...value])
  const stored = { mapping: join(dataDir, plan.mapping), columns: plan.columns }
  return inputCommand(['import', plan.kind, file, ...words], importInput, {
    ...(origin === undefined && stored),
    ...input,
  })
}
