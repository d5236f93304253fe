import { join } from 'node:path'
import type { EndedNote } from '../runs/run-files.ts'
import type { ReportCounts } from '../runs/view/counts.ts'
import { connectorCommand, shell } from '../runs/view/shell.ts'
import type { NextStep } from '../runs/view/view.ts'
import { type ImportPlan, runFiles } from './plan.ts'
import type { Origin } from './run-files.ts'

/** The next steps after an import, or during one, with their commands filled in. */
export function importNextSteps(options: {
  plan: ImportPlan
  dataDir: string
  ended: EndedNote | undefined
  counts: ReportCounts
  /** The first parked row. */
  parkedRow: number | undefined
  /** The person's own file. Default: the stored copy, which identifies the same run. */
  origin?: Origin | undefined
  /** What the service said of the first row that was not done. */
  message?: string | undefined
}): NextStep[] {
  const { plan, dataDir, ended, counts, parkedRow, origin, message } = options
  const { run } = plan
  const path = (name: string) => join(dataDir, plan.folder, name)
  const again = (file: string) => {
    const command = ['import', plan.kind, file]
    // A result sheet begins with its header, whatever its file began with.
    const reading = origin && origin.reading.filter(([option]) => !ofWholeFile.has(option))
    return reading === undefined
      ? connectorCommand(command, filesOf(plan, dataDir))
      : connectorCommand([...command, ...toWords(reading)])
  }
  const same = (extra: Parameters<typeof connectorCommand>[1] = {}) =>
    sameCommand({ plan, dataDir, extra, origin })
  if (plan.dryRun) return [{ text: 'to import it', command: same() }]
  if (ended === undefined) return [{ text: 'to follow the run', command: shell`connector watch ${run}` }]
  if (ended.how === 'refused') return [{ text: 'fix the file, then import it again', command: same() }]
  const { staged, notTried, unknown, rejected, parked } = counts
  // A finished run has looked up everything that it sent, so only a ledger from a backup has unknown rows of it.
  const lost = ended.how === 'finished' ? unknown : 0
  const left = staged + notTried + unknown - lost
  const rejectedFile = path(runFiles.rejected)
  // The others are like those that failed, and in the same file: the same command would do the same again.
  const isCanary = ended.canary === true && left > 0
  return [
    ...(isCanary
      ? [
          {
            text: `the rows that went first all failed${message === undefined ? '' : ` (${message})`}: correct the file, then import it again`,
            command: same(),
          },
        ]
      : []),
    ...(rejected === 0 || isCanary
      ? []
      : [
          {
            text: `${rejected} ${rows(rejected)} to fix: open ${rejectedFile}, then`,
            command: again(rejectedFile),
          },
        ]),
    ...(parked === 0
      ? []
      : [
          {
            text: `${parked} parked ${rows(parked)}: look in the service as ${path(runFiles.parked)} says, then (or --absent, --drop)`,
            command: `${shell`connector resolve ${run} --row ${parkedRow ?? '<row>'}`} --exists <id> --why "..."`,
          },
        ]),
    ...(lost === 0
      ? []
      : [
          {
            text: `The ledger is older than this run. To look up ${lost} unknown ${rows(lost)}: stop the worker, fix the ledger as here, start the worker, and run the import again`,
            command: 'connector restored',
          },
        ]),
    ...(left === 0 || isCanary
      ? []
      : ended.how === 'finished'
        ? [{ text: `to send the remaining ${left}`, command: same({ done: 'skip' }) }]
        : [{ text: `to resume with the remaining ${left}`, command: same() }]),
  ]
}

/** The command that belongs to the same run: it resumes it, or shows how it ended. */
export const sameCommand = ({
  plan,
  dataDir,
  extra = {},
  origin,
}: {
  plan: ImportPlan
  dataDir: string
  extra?: Parameters<typeof connectorCommand>[1]
  origin?: Origin | undefined
}): string =>
  origin === undefined
    ? connectorCommand(['import', plan.kind, join(dataDir, plan.file)], {
        ...filesOf(plan, dataDir),
        ...decisionsOf(plan),
        ...extra,
      })
    : connectorCommand(['import', plan.kind, origin.file, ...toWords(origin.reading)], {
        ...decisionsOf(plan),
        ...extra,
      })

/** These options say where the rows are in a file. */
const ofWholeFile: ReadonlySet<string> = new Set(['sheet', 'header-row', 'skip-rows'])

const toWords = (reading: Origin['reading']) => reading.flatMap(([option, value]) => [`--${option}`, value])

const rows = (count: number) => (count === 1 ? 'row' : 'rows')

/** The files of a plan: the stored copies, which identify the same run as the originals. */
const filesOf = ({ mapping, columns }: ImportPlan, dataDir: string) => ({
  mapping: join(dataDir, mapping),
  columns,
})

const decisionsOf = ({ onInvalid, done, existing, sendAgain }: ImportPlan) => ({
  'on-invalid': onInvalid === 'skip' ? onInvalid : undefined,
  done: done === 'skip' ? done : undefined,
  existing: existing === 'refuse' ? undefined : existing,
  'send-again': sendAgain.length > 0,
  rows: sendAgain,
})
