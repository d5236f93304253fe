import { mkdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type ImportInput, runFiles } from '../../core/imports/input.ts'
import { fileOf, type ImportNotes, type Origin } from '../../core/imports/run-files.ts'
import { replaceFile } from '../../core/storage/durable.ts'
import type { Session } from '../session/session.ts'
import { refuseFile, RefusedError } from '../terminal/failures.ts'
import { type Call, runToEnd, startRun, type StartedRun } from './jobs.ts'
import { reportImport } from './report.ts'
import { importFolder, notesOf, sharedFolder } from './run-files.ts'
import { awaitAnyEnd, isResolving } from './find-run.ts'
import {
  type PreparedInput,
  prepareInput,
  shareInput,
  type StoredInput,
} from '../../core/imports/stored-input.ts'
import { fingerprintOf } from '../../core/imports/open.ts'
import type { Mapping } from '../../core/imports/mapping/mapping.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { checkFile, type FileCheck } from '../../core/imports/check.ts'
import { toSentence } from '../../core/imports/problems.ts'
import { sheetsNotRead } from '../../core/imports/view.ts'
import { formatCountOf, toPrintableLine } from '../../core/runs/view/format.ts'
import { columnNames, toReceiptTables } from '../../core/imports/totals.ts'
import { toTablesText } from '../../core/runs/view/text.ts'

/** An import as the command line requests it, parsed and checked. */
export interface ImportOrder extends Origin {
  mapping: Mapping
  /** What the workflow's input has besides its files. */
  input: Omit<ImportInput, 'file' | 'mapping' | 'identity'>
  yes: boolean
}

type Importing = Call & ImportOrder

/** Imports a file, or resumes the unfinished import of the same one, and follows it to its end. */
export async function runImport(importing: Importing): Promise<void> {
  const { settings, terminal, file, reading } = importing
  const uploaded = await uploadImport(importing)
  const { run } = uploaded
  await using _ = uploaded.prepared
  await previewImport({ ...importing, uploaded })
  if (uploaded.before === 'finished') {
    terminal.note(`The run ${run} of this file has ended, so nothing was sent now. This is its report:`)
    return void (await reportImport({ ...importing, run }))
  }
  await runToEnd({
    ...importing,
    request: { workflow: 'importFile', workflowId: run },
    async start(session) {
      // The person's own file, for the next steps of the run's report.
      const folder = importFolder({ dataDir: settings.dataDir, run })
      await mkdir(folder, { recursive: true })
      await replaceFile(join(folder, runFiles.origin), JSON.stringify({ file, reading } satisfies Origin))
      return await startImport({ ...importing, session, uploaded })
    },
    stopNote: 'everything that was sent is on record; run the same command again to resume',
  })
}

export async function startImport(
  of: Omit<Importing, 'local'> & { session: Session; uploaded: UploadedImport },
): Promise<StartedRun> {
  const { settings, terminal, input, yes, detach, session, uploaded } = of
  const isThere = terminal.isInteractive && !detach
  const isLive = session.identity.mode === 'live'
  const stored = await storeUpload(uploaded, settings)
  const request = {
    workflow: 'importFile',
    workflowId: uploaded.run,
    input: { ...input, confirmCanary: isThere && !yes && isLive, attended: isThere, ...stored },
    summary: `${input.kind} from a file`,
  } as const
  for (;;) {
    const { handle, attached } = await startRun({ settings, session, request })
    if (!attached || !(await isResolving(handle)))
      return { handle, attached: attached || uploaded.before === 'unfinished' }
    terminal.note(
      `The run ${uploaded.run} sends rows that were resolved. The import continues when it has ended.`,
    )
    await awaitAnyEnd(handle)
  }
}

/** An import whose files were copied, which are not stored before it starts. */
interface UploadedImport {
  /** The name and state of the run that the request belongs to. */
  run: string
  before: 'nothing' | 'unfinished' | 'finished'
  prepared: PreparedInput
}

/**
 * Copies the requested files into the data folder and finds their run: the same rows read in the same way always
 * have the same run, so the same command resumes it.
 */
export async function uploadImport(
  order: Pick<Importing, 'settings' | 'file' | 'mapping' | 'input'>,
): Promise<UploadedImport> {
  const { settings, file, mapping, input } = order
  const { dataDir, billing } = settings
  const files = { file, mapping, kind: input.kind, columns: input.columns }
  const prepared = await prepareInput({ dataDir, files }).catch(refuseFile)
  const mode = billing.testMode ? 'test' : 'live'
  const { workspace } = billing
  const fingerprint = fingerprintOf({ ...input, workspace, mode, hash: prepared.hash })
  return { ...(await findRun({ ...order, fingerprint, mode })), prepared }
}

/** Stores the input where workers find it, also those on other machines. */
async function storeUpload({ prepared }: UploadedImport, settings: Settings): Promise<StoredInput> {
  const { dataDir } = settings
  const stored = await prepared.keep()
  await shareInput({ ...stored, dataDir, shared: sharedFolder(settings) })
  return stored
}

async function findRun(
  options: Pick<Importing, 'settings' | 'file' | 'input'> & { fingerprint: string; mode: 'live' | 'test' },
): Promise<Pick<UploadedImport, 'run' | 'before'>> {
  const { settings, file, input, fingerprint, mode } = options
  const name = [input.kind, ...(mode === 'test' ? ['test'] : []), toWord(file)].join('-')
  if (input.dryRun) return { run: `dry-run-${name}-${toTime(new Date())}`, before: 'nothing' }
  for (let use = 1; ; use += 1) {
    const run = `import-${name}-${fingerprint.slice(0, 8)}${use === 1 ? '' : `-${use}`}`
    const { plan, ended, staged } = await notesOf<ImportNotes>(settings, run)
    const isRefused = ended?.how === 'refused' && staged === undefined
    if (plan === undefined || isRefused) return { run, before: 'nothing' }
    if (ended?.how !== 'finished') return { run, before: 'unfinished' }
    // The remaining rows become a run of their own.
    if (input.done !== 'skip') return { run, before: 'finished' }
  }
}

const toWord = (file: string) =>
  basename(file)
    .replace(/\.[^.]*$/, '')
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .toLowerCase()
    .slice(0, 40)

const toTime = (at: Date) => at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')

/** The most problems to show on a screen; `check.json` in the run's folder lists up to a thousand. */
const mostShown = 20

/**
 * Checks the whole file, as copied for the run, before any server is started. Shows its control totals, unless
 * the report will.
 *
 * @throws if the file cannot be sent
 */
async function previewImport(
  of: Pick<Importing, 'settings' | 'terminal' | 'input'> & { uploaded: UploadedImport },
): Promise<void> {
  const { settings, terminal, input, uploaded } = of
  const file = await fileOf({ plan: { ...input, ...uploaded.prepared }, dataDir: settings.dataDir })
  // First, because what is wrong with this sheet may be that the data is in another one.
  for (const line of sheetsNotRead(file.mapping?.sheets)) terminal.note(toPrintableLine(line))
  const { expectRows, expectTotals, onInvalid } = input
  const check = await checkFile({ ...file, expectRows, expectTotals }).catch(refuseFile)
  const isRefused = check.problemCount > 0 && (check.stopped || onInvalid !== 'skip')
  // The report of a dry run has the totals.
  for (const line of describe(check, { withTotals: isRefused || !input.dryRun })) terminal.note(line)
  const { problems } = check
  if (isRefused) {
    const many = formatCountOf(check.problemCount, 'problems')
    throw new RefusedError(`${check.file} has ${many}, so nothing was sent.`, {
      hint: check.stopped
        ? 'Fix the file, or set how it is read.'
        : 'Fix the rows, or skip them with --on-invalid skip.',
      details: {
        problems: problems.map((problem) => ({ ...problem, sentence: toSentence(problem) })),
        problemCount: check.problemCount,
        totals: check.totals,
      },
    })
  }
}

function describeGaps({ empty, nulls }: { empty: number; nulls: number }): string {
  const cells = empty === 0 ? [] : [formatCountOf(empty, 'empty cells')]
  return [...cells, ...(nulls === 0 ? [] : [`${nulls.toLocaleString('en')} with \\N (null)`])].join(', ')
}

function describe(check: FileCheck, { withTotals }: { withTotals: boolean }): string[] {
  const { totals, problems, problemCount, columns, ignored } = check
  const unused = ignored.map(({ column, reason }) => `${column} is ignored: ${reason}`)
  const cells = columns.flatMap(({ column, empty, null: nulls }) =>
    empty + nulls === 0 ? [] : [`${column}: ${describeGaps({ empty, nulls })}`],
  )
  const shown = problems.slice(0, mostShown)
  const left = shown.reduce((count, { more = 0 }) => count - 1 - more, problemCount)
  return [
    // First: of a sheet without its columns, the totals say nothing.
    ...shown.map((problem) => toPrintableLine(toSentence(problem))),
    ...(left > 0 ? [`... and ${formatCountOf(left, 'more problems')}`] : []),
    ...(withTotals ? [toTablesText(toReceiptTables({ file: totals, columns: columnNames(columns) }))] : []),
    ...[...unused, ...cells].map(toPrintableLine),
  ]
}
