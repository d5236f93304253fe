import type { ImportInput, ImportPlan } from '../core/imports/input.ts'
import type { ImportResult } from '../core/imports/view.ts'
import type { RunEnd } from '../core/runs/run-notes.ts'
import { formatCountOf } from '../core/runs/view/format.ts'
import { connector } from '../core/runs/view/shell.ts'
import { refOf } from './run/run-ref.ts'
import { steps, type WriteJob, type WriteRun } from './write-run/job.ts'
import type { ImportProgress, StagedImport } from './write-run/progress.ts'
import { toImportText } from './write-run/text.ts'
import { writeRun } from './write-run/write-run.ts'

type ImportJob = WriteJob<ImportPlan, StagedImport, ImportResult, ImportProgress>
type ImportRun = WriteRun<ImportPlan, ImportProgress>

/**
 * Imports a CSV file: checks the whole file before sending anything, sends each row once, and reconciles every
 * request without an answer. The report has the outcome of each row and says whether it is proven.
 */
export async function importFile(input?: ImportInput | null): Promise<ImportResult> {
  const progress: ImportProgress = { phase: 'checking', limits: {} }
  return await writeRun<ImportPlan, StagedImport, ImportResult, ImportProgress>({
    name: 'import',
    input: input ?? {},
    progress,
    describe: toImportText,
    onPlan: ({ kind, file }) => void Object.assign(progress, { kind, file }),
    resourcesOf: ({ resource }) => [resource],
    stage: { phase: 'staging', isRefusal: true },
    questions: ({ does, approval, confirmCanary, decided }, { open }) => ({
      ...(approval && !decided.approval && { approval: does === 'delete' ? { count: open } : {} }),
      confirmCanary: confirmCanary && !decided.canary,
    }),
    onCanary,
    onBound,
    prove,
    failure: ({ why }) => ({
      type: 'ImportFailed',
      message: `${why} What was sent is known, and the same import resumes from there.`,
    }),
    parkedCommand: ({ run, rows }) =>
      connector`run resolve ${run} --rows ${rows.parked?.[0] ?? 0} --exists <id> | --absent | --drop --why "..."`,
  })
}

const giveUp = (why: string): RunEnd => ({ how: 'finished', why })

const onCanary: ImportJob['onCanary'] = async (_, { rows }) => ({
  ...giveUp(
    rows.length === 1
      ? `the only row of the canary failed (${rows.join()}), so no others were sent`
      : `all ${rows.length} rows of the canary failed (${rows.join(', ')}), so no others were sent`,
  ),
  canary: true,
})

const onBound: ImportJob['onBound'] = async ({ progress }, bound) =>
  bound === 'maxChanges'
    ? giveUp(`the limit of ${formatCountOf(progress.limits.maxChanges ?? 0, 'changes')} was reached`)
    : giveUp(`more than ${formatCountOf(progress.limits.maxFailures ?? 0, 'changes')} failed`)

/** Compares every row with the service. */
async function prove({ plan, progress, show, control }: ImportRun, end: RunEnd): Promise<RunEnd> {
  if (end.how === 'stopped' || !plan.listed) return end
  const audit = await control.unlessStopped(() => {
    progress.phase = 'proving'
    show()
    const summary = 'compare every row with the service'
    return steps.proveRun.executeWithOptions({ summary }, [{ ...refOf(plan), limits: progress.limits }])
  })
  if (audit !== undefined) return end
  return {
    how: 'stopped',
    why: 'stopped before it was proven; the same import resumes from there',
  }
}
