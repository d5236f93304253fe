import { proxyActivities } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { ImportInput, ImportPlan } from '../core/imports/input.ts'
import type { ImportResult } from '../core/imports/view.ts'
import type { RunEnd } from '../core/runs/run-notes.ts'
import { connector } from '../core/runs/view/shell.ts'
import { type ImportProgress, type StagedImport, toImportText } from './import-view.ts'
import { openingWrite, sending, wholeRun } from './run/activity-options.ts'
import { refOf } from './run/run-ref.ts'
import type { WriteJob, WriteRun } from './write-run/job.ts'
import { writeRun } from './write-run/write-run.ts'

const { openImport } = proxyActivities<Activities>(openingWrite)
const { sendImport } = proxyActivities<Activities>(sending)
const { stageImport, auditImport, closeImport } = proxyActivities<Activities>(wholeRun)

type ImportJob = WriteJob<ImportPlan, StagedImport, ImportResult, ImportProgress>
type ImportRun = WriteRun<ImportPlan, ImportProgress>

/**
 * Imports a CSV file: checks the whole file before sending anything, sends each row once, and reconciles every
 * request without an answer. The report has the outcome of each row and says whether it is proven.
 */
export async function importFile(input?: ImportInput | null): Promise<ImportResult> {
  const job: ImportJob = {
    text: {
      control: { between: 'two changes', kept: 'the ledger has everything that was sent' },
      operator: {
        limits: {
          requestsPerSecond: 2,
          concurrency: 1,
          maxChanges: 500,
          maxFailures: 10,
          maxFailureShare: 0.2,
        },
        report:
          'Row numbers by outcome, a page of 100 at a time: {"outcome": "parked", "page": 1}. Done rows are in results.csv.',
      },
      stoppedWhileOpening: 'Stopped before the file was read; this execution sent nothing.',
      stopped: 'stopped; the same import resumes from there',
      notApproved: 'nobody approved in time; the same import asks again',
    },
    progress: { phase: 'checking', limits: {} },
    describe: toImportText,
    open: async () => {
      const summary = 'check input, copy the file'
      const plan = await openImport.executeWithOptions({ summary }, [input ?? {}])
      Object.assign(job.progress, { kind: plan.kind, file: plan.file })
      return plan
    },
    resourcesOf: ({ resource }) => [resource],
    stage: {
      phase: 'staging',
      run: ({ run, identity }) =>
        stageImport.executeWithOptions({ summary: 'check and stage every row' }, [{ run, identity }]),
      isRefusal: true,
    },
    questions: ({ does, approval, confirmCanary, decided }, { open }) => ({
      ...(approval && !decided.approval && { approval: does === 'delete' ? { count: open } : {} }),
      confirmCanary: confirmCanary && !decided.canary,
    }),
    send: (segment, summary) => sendImport.executeWithOptions({ summary }, [segment]),
    onCanary,
    onBound,
    prove,
    close: (end) => closeImport.executeWithOptions({ summary: 'write the report' }, [end]),
    failure: ({ why }) => ({
      type: 'ImportFailed',
      message: `${why} What was sent is known, and the same import resumes from there.`,
    }),
    parkedCommand: ({ run, rows }) =>
      connector`run resolve ${run} --rows ${rows.parked?.[0] ?? 0} --exists <id> | --absent | --drop --why "..."`,
  }
  return await writeRun(job)
}

const giveUp = (why: string): RunEnd => ({ how: 'finished', giveUp: true, why })

const onCanary: ImportJob['onCanary'] = async (_, { rows }) => ({
  ...giveUp(`all ${rows.length} rows of the canary failed (${rows.join(', ')}), so no others were sent`),
  canary: true,
})

const onBound: ImportJob['onBound'] = async ({ progress }, bound) =>
  bound === 'maxChanges'
    ? giveUp(`the limit of ${progress.limits.maxChanges} changes was reached`)
    : giveUp(`more than ${progress.limits.maxFailures} changes failed`)

/** Compares every row with the service. */
async function prove({ plan, progress, show, control }: ImportRun, end: RunEnd): Promise<RunEnd> {
  if (end.how === 'stopped' || !plan.listed) return end
  const audit = await control.unlessStopped(() => {
    progress.phase = 'proving'
    show()
    const summary = 'compare every row with the service'
    return auditImport.executeWithOptions({ summary }, [{ ...refOf(plan), limits: progress.limits }])
  })
  if (audit !== undefined) return end
  return {
    how: 'stopped',
    giveUp: false,
    why: 'stopped before it was proven; the same import resumes from there',
  }
}
