import { join } from 'node:path'
import type { EndedNote } from '../runs/run-files.ts'
import type { ReportCounts } from '../runs/view/counts.ts'
import { connectorCommand, shell } from '../runs/view/shell.ts'
import type { NextStep } from '../runs/view/view.ts'
import { type ImportPlan, runFiles } from './plan.ts'

/** The next steps after an import, or during one, with their commands filled in. */
export function importNextSteps(options: {
  plan: ImportPlan
  dataDir: string
  ended: EndedNote | undefined
  counts: ReportCounts
  /** The first parked row. */
  parkedRow: number | undefined
}): NextStep[] {
  const { plan, dataDir, ended, counts, parkedRow } = options
  const { run } = plan
  const path = (name: string) => join(dataDir, plan.folder, name)
  const again = (file: string, extra: Parameters<typeof connectorCommand>[1] = {}) =>
    connectorCommand(['import', plan.kind, file], { ...filesOf(plan, dataDir), ...extra })
  const same = (extra: Parameters<typeof connectorCommand>[1] = {}) => sameCommand({ plan, dataDir, extra })
  if (plan.dryRun) return [{ text: 'to import it', command: same() }]
  if (ended === undefined) return [{ text: 'to follow the run', command: shell`connector watch ${run}` }]
  if (ended.how === 'refused') return [{ text: 'fix the file, then import it again', command: same() }]
  const { staged, notTried, unknown, rejected, parked } = counts
  // A finished run has looked up everything that it sent, so only a ledger from a backup has unknown rows of it.
  const lost = ended.how === 'finished' ? unknown : 0
  const left = staged + notTried + unknown - lost
  const rejectedFile = path(runFiles.rejected)
  return [
    ...(rejected === 0
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
    ...(left === 0
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
}: {
  plan: ImportPlan
  dataDir: string
  extra?: Parameters<typeof connectorCommand>[1]
}): string =>
  connectorCommand(['import', plan.kind, join(dataDir, plan.file)], {
    ...filesOf(plan, dataDir),
    ...decisionsOf(plan),
    ...extra,
  })

const rows = (count: number) => (count === 1 ? 'row' : 'rows')

/** The files of a plan: the run's own copies, which identify the same run as the originals. */
const filesOf = ({ mapping, lines, columns }: ImportPlan, dataDir: string) => ({
  mapping: join(dataDir, mapping),
  lines: lines === undefined ? undefined : join(dataDir, lines),
  columns,
})

const decisionsOf = ({ onInvalid, done, existing, sendAgain }: ImportPlan) => ({
  'on-invalid': onInvalid === 'skip' ? onInvalid : undefined,
  done: done === 'skip' ? done : undefined,
  existing: existing === 'refuse' ? undefined : existing,
  'send-again': sendAgain.length > 0,
  rows: sendAgain,
})
