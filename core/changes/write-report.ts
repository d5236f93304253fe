import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ChangeRun, type EndedNote, reportFiles, type RunEnd, type RunNotes } from '../runs/run-notes.ts'
import { places, type ReportCounts } from '../runs/view/counts.ts'
import { toReportPage } from '../runs/view/html.ts'
import { type NextStep, toFetch, type View } from '../runs/view/view.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { temporaryFolder } from '../storage/durable.ts'
import { placeOf, type ReportSummary, summarize } from './report.ts'
import { explain, type FullChangesReport } from './view.ts'

/** The end of a run, whose files replace those of an earlier end. */
interface Closing {
  shared: SharedFolder
  /**
   * Called before each file is replaced.
   *
   * @throws {SupersededError} a later attempt has ended the run
   */
  refuseSuperseded: () => Promise<void>
}

/** A run to report on. May be any, also one in progress. */
export interface Reporting<Plan extends ReportedPlan> {
  ledger: Ledger
  plan: Plan
  dataDir: string
  notes: RunNotes
  /** Where several workers share the files, people find them on another machine: paths are relative to its data folder. */
  closing?: Closing | undefined
}

interface ReportedPlan extends ChangeRun {
  startedAt: string
  dryRun: boolean
}

/** The most rows of a state that a report names; the sheets have all of them. */
const mostNamed = 500
/** Enough messages to see what is wrong. */
const mostMessages = 5

type Place = keyof ReportCounts

/** Why a row is not done. */
interface RowReason {
  message: string
  /** Without what a cell or the service says, for a page that people pass on. */
  outward: string
}

export type RowTally<Named> = ReturnType<typeof createRowTally<Named>>

/** Collects the rows that a report names because they are not done, by state; `named` identifies a row there. */
function createRowTally<Named>() {
  const rows: Partial<Record<Place, Named[]>> = {}
  const reasons: Partial<Record<Place, ({ named: Named } & RowReason)[]>> = {}
  return {
    rows,
    add(place: Place, named: Named): void {
      if (place !== 'done' && place !== 'staged' && (rows[place]?.length ?? 0) < mostNamed)
        (rows[place] ??= []).push(named)
    },
    /** Adds a row that needs attention. */
    addReason(place: Place, named: Named, reason: RowReason): void {
      if ((reasons[place]?.length ?? 0) < mostMessages) (reasons[place] ??= []).push({ named, ...reason })
    },
    /** The first rows that need attention, with why. */
    first: (as: keyof RowReason) =>
      places.flatMap((state) =>
        (reasons[state] ?? []).map((one) => ({ ...one.named, state, message: one[as] })),
      ),
  }
}

/** What the report of every write run has besides its rows. */
type Common<Named> = Pick<FullChangesReport, 'startedAt' | 'identity' | 'folder' | 'files' | 'next'> & {
  first: (Named & FullChangesReport['first'][number])[]
}

/** What the report of a job has beyond that of every write run. */
interface JobReport<Named extends { row: number }, Result, Full> {
  /** The sheets with the rows, by name. */
  sheets: Readonly<Record<string, string>>
  writeSheets(rows: AsyncIterable<LedgerRow>, folder: string): Promise<void>
  /** Number of changes the run staged. */
  staged: number
  /**
   * Called with each row. Returns what names it and, if it needs attention, why: without what a cell or the service says.
   */
  take(row: LedgerRow, place: Place): { named: Named; outward: string | undefined }
  /** What is wrong with rows of a dry run. */
  invalid: readonly (RowReason & { named: Named })[]
  /** After all rows: what the workflow returns, and the report on disk. */
  describe(
    summary: ReportSummary,
    rows: RowTally<Named>['rows'],
    common: Common<Named>,
  ): Pick<Reported<Result, Full>, 'result' | 'report'>
  /** `isOutward`: for Temporal. */
  nextOf(report: Full, isOutward: boolean): NextStep[]
  /** Nobody should have to look for what the service said: it is why the run ended. */
  saysWhy(report: Full): boolean
  /** For Temporal: without what a person's file and the service's records contain. */
  withoutContents(report: Full): Full
  toView(report: Full): View
}

/** The report of a run as its workflow returns it, the complete one, and their views. */
export interface Reported<Result, Full> {
  result: Result
  report: Full
  view: View
  /** For Temporal. */
  outward: View
}

/**
 * Writes report.json, report.html and the sheets of a run into its folder, from the ledger and its notes in one pass over
 * the rows, and at its end for all workers. May be called at any moment, also beside a worker: each file is replaced whole,
 * the report last.
 */
export async function writeChangesReport<
  Named extends { row: number },
  Result,
  Full extends FullChangesReport,
>(
  { ledger, plan, dataDir, closing }: Reporting<ReportedPlan>,
  job: JobReport<Named, Result, Full>,
): Promise<Reported<Result, Full>> {
  const { run, startedAt, identity, dryRun } = plan
  const isShared = closing?.shared.isShared === true
  const folder = join(dataDir, plan.folder)
  const shownFolder = join(isShared ? '' : dataDir, plan.folder)
  const sheets = Object.values(job.sheets)
  const files = Object.entries({ ...job.sheets, report: reportFiles.report })
  const tally = createRowTally<Named>()
  async function* readRows(): AsyncGenerator<LedgerRow> {
    for await (const row of ledger.rows({ run })) {
      const place = placeOf(row)
      const { named, outward } = job.take(row, place)
      tally.add(place, named)
      if (outward !== undefined) tally.addReason(place, named, { message: explain(row) ?? '', outward })
      yield row
    }
  }
  await using temporary = await temporaryFolder(folder, '.report-')
  const fresh = temporary.path
  const rows = readRows()
  // A dry run has no rows in the ledger.
  const isWritten = !dryRun && sheets.length > 0
  if (isWritten) await job.writeSheets(rows, fresh)
  else for await (const _ of rows);
  for (const { named, ...reason } of job.invalid) tally.addReason('rejected', named, reason)
  const { result, report } = job.describe(await summarize({ ledger, run, staged: job.staged }), tally.rows, {
    files: Object.fromEntries(files.map(([name, file]) => [name, join(shownFolder, file)])),
    startedAt,
    identity,
    folder: shownFolder,
    first: tally.first('message'),
    next: [],
  })
  const nextOf = (isOutward: boolean) => [
    ...(isShared ? [toFetch(run)] : []),
    ...job.nextOf(report, isOutward),
  ]
  report.next = nextOf(false)
  const kept = job.saysWhy(report) ? report : { ...report, first: tally.first('outward') }
  await writeFile(join(fresh, reportFiles.page), toReportPage(job.toView(kept)))
  await writeFile(join(fresh, reportFiles.report), `${JSON.stringify(kept, null, 2)}\n`)
  for (const name of [...(isWritten ? sheets : []), reportFiles.page, reportFiles.report]) {
    await closing?.refuseSuperseded()
    await rename(join(fresh, name), join(folder, name))
    await closing?.shared.keep(join(folder, name))
  }
  const outward = job.toView({ ...job.withoutContents(report), first: [], next: nextOf(true) })
  return { result, report, view: job.toView(report), outward }
}

/** Notes how a run ended, and writes its report for all workers. */
export async function endRun<Result>(
  { how, why, canary, notes, run, shared }: RunEnd & { notes: RunNotes; run: string; shared: SharedFolder },
  write: (closing: Closing) => Promise<Reported<Result, unknown>>,
): Promise<{ result: Result; view: View }> {
  const at = new Date().toISOString()
  const ended: EndedNote = { how, ...(why !== undefined && { why }), ...(canary && { canary }), at }
  // An audit of the rows sent so far proves nothing about rows sent later.
  const refuseSuperseded = () => notes.write(run, { ended, ...(how !== 'finished' && { audit: null }) })
  await refuseSuperseded()
  const { result, outward: view } = await write({ shared, refuseSuperseded })
  return { result, view }
}
