import {
  ApplicationFailure,
  CancellationScope,
  allHandlersFinished,
  condition,
  proxyActivities,
  rootCause,
  setCurrentDetails,
} from '@temporalio/workflow'
import type { ImportResult } from '../core/imports/view.ts'
import type { ImportEnd } from '../core/imports/close.ts'
import type { ImportInput } from '../core/imports/input.ts'
import type { Activities } from '../activities/index.ts'
import type { Opened } from '../core/notifications/opened.ts'
import type { Staged } from '../core/imports/run-files.ts'
import type { ImportPlan } from '../core/imports/plan.ts'
import { type Desk, openDesk } from './write-run/operator.ts'
import { openMarks, type Marks } from './run/search-attributes.ts'
import { describeImport, type ImportProgress } from './import-details.ts'
import { sendAll } from './write-run/send-import.ts'
import { onlyFailures } from './only-failures.ts'
import { controlRun, stoppedBefore, type RunControl } from './run/control.ts'
import { refOf } from './ref-of.ts'
import type { SendingEnd } from './write-run/send-loop.ts'
import { shell } from '../core/runs/view/shell.ts'

const patience = { initialInterval: '1s', maximumInterval: '1 minute', maximumAttempts: 40 } as const

const { openImport } = proxyActivities<Activities>({
  // A stopped run has ended when its step has: what the step still does is in the report.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '5s',
  retry: patience,
})
const { stageImport, auditImport, closeImport } = proxyActivities<Activities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '5s',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: patience,
})

const words = {
  limits: { requestsPerSecond: 2, concurrency: 1, maxChanges: 500, maxFailures: 10, maxFailureShare: 0.2 },
  report:
    'Row numbers by outcome, a page of 100 at a time: {"outcome": "parked", "page": 1}. Done rows are in results.csv.',
}

interface Run {
  progress: ImportProgress
  show: () => void
  control: RunControl
  desk: Desk<ImportPlan, ImportResult>
  marks: Marks
}

/**
 * Imports a CSV file: checks all of it before anything is sent, sends each row once, finds out what became of every
 * request without an answer, and ends in a report that says, row by row, what is done and whether it is proven.
 */
export async function importFile(input?: ImportInput | null): Promise<ImportResult> {
  const progress: ImportProgress = { phase: 'checking', limits: {} }
  const marks = openMarks()
  const show = () => {
    setCurrentDetails(describeImport(progress))
    // Whoever looks for runs that wait for somebody finds it; how it ended is said at its end.
    if (progress.phase !== 'ended') marks.set({ needsPerson: progress.waitingFor !== undefined })
  }
  const control = controlRun({
    words: { between: 'two changes', kept: 'the ledger knows what was sent' },
    onChange: (now) => {
      if (progress.phase !== 'ended')
        progress.phase = now.stopping ? 'stopping' : now.paused ? 'paused' : 'sending'
      show()
    },
  })
  const desk = openDesk<ImportPlan, ImportResult>({ progress, show, control, words })
  show()
  return CancellationScope.nonCancellable(async () => {
    const plan = await open({ input, control })
    const { run, kind, file, identity, limits } = plan
    Object.assign(progress, { run, kind, file, identity, limits: { ...limits, ...progress.limits } })
    desk.plan = plan
    marks.listen(plan)
    marks.set({ resources: [plan.kind.replace(/^(update|delete)-/, '')] })
    return await runPlan({ plan, progress, show, control, desk, marks })
  }).catch(desk.notices.fail)
}

async function open({
  input,
  control,
}: {
  input: ImportInput | null | undefined
  control: RunControl
}): Promise<Opened<ImportPlan>> {
  const summary = 'check input, copy the file'
  const plan = await control.unlessStopped(() => openImport.executeWithOptions({ summary }, [input ?? {}]))
  if (plan === undefined) throw stoppedBefore('Stopped before the file was looked at; nothing was sent.')
  return plan
}

async function runPlan(run: Run & { plan: Opened<ImportPlan> }): Promise<ImportResult> {
  const { plan, desk, progress, show } = run
  const staged = await stage(run).catch((error: unknown) => fail({ run, how: 'refused', error }))
  // What is wrong with the file is shown to the person who sent it, and to nobody else.
  desk.notices.listen(plan)
  for (let isFirst = true; ; isFirst = false) {
    const { resolved } = desk
    const end = await endOf({ ...run, staged: isFirst ? staged : nothingStaged(staged) })
    // A row that somebody resolved meanwhile may have to be sent.
    if (end.how === 'finished' && !end.giveUp && !(await desk.close(resolved))) continue
    const result = await close(run, end)
    progress.phase = 'ended'
    show()
    const { parked, rejected } = result.counts
    const needsPerson = result.verdict === 'unproven' || parked + rejected > 0
    run.marks.set({ verdict: result.verdict, needsPerson })
    await tellEnd(run, result)
    return result
  }
}

async function tellEnd({ desk, control }: Run, report: ImportResult): Promise<void> {
  const { run, counts, rows, summary, verdict } = report
  const { notices } = desk
  if (counts.parked > 0) {
    const command = shell`connector resolve ${run} --row ${rows.parked?.[0] ?? 0} --exists <id> | --absent | --drop --why "..."`
    return await notices.tell({ kind: 'parked', summary, command, report })
  }
  const isAsWanted = verdict !== 'unproven' || control.stopping
  await notices.tell({ kind: isAsWanted ? 'ended' : 'unproven', summary, report })
}

async function endOf(run: Run & { plan: ImportPlan; staged: Staged | undefined }): Promise<ImportEnd> {
  const { plan, staged } = run
  if (staged === undefined) return { how: 'stopped', why: 'stopped before anything was sent', giveUp: false }
  if (plan.dryRun) return { how: 'dryRun', giveUp: false }
  try {
    return await work({ ...run, staged })
  } catch (error) {
    return await fail({ run, how: 'failed', error })
  }
}

/** The run ends as failed, but not without its report. */
async function fail({
  run,
  how,
  error,
}: {
  run: Run & { plan: ImportPlan }
  how: 'refused' | 'failed'
  error: unknown
}): Promise<never> {
  onlyFailures(error)
  const why = rootCause(error) ?? String(error)
  await close(run, { how, why, giveUp: false })
  run.marks.set({ verdict: 'failed', needsPerson: true })
  // A refusal keeps its own name: nothing was done.
  if (how === 'refused') throw error
  const after = 'What was sent is known, and the same import goes on from there.'
  throw ApplicationFailure.nonRetryable(`${why} ${after}`, 'ImportFailed')
}

async function close(run: Run & { plan: ImportPlan }, end: ImportEnd): Promise<ImportResult> {
  const { plan, desk, progress, show } = run
  await desk.close()
  progress.phase = 'reporting'
  show()
  const input = { ...refOf(plan), ...end }
  const result = await closeImport.executeWithOptions({ summary: 'write the report' }, [input])
  desk.result = result
  progress.counts = result.counts
  progress.summary = result.summary
  show()
  return result
}

const nothingStaged = (staged: Staged | undefined) => staged && { ...staged, open: 0, canary: [] }

/** Undefined where the run was stopped meanwhile. */
async function stage({
  plan,
  progress,
  show,
  control,
}: Run & { plan: ImportPlan }): Promise<Staged | undefined> {
  for (;;) {
    await control.mayGoOn()
    if (control.stopping) return undefined
    progress.phase = 'staging'
    show()
    const staged = await control.untilInterrupted(() =>
      stageImport.executeWithOptions({ summary: 'check and stage every row' }, [refOf(plan)]),
    )
    if (staged === 'interrupted') continue
    progress.staged = staged
    show()
    return staged
  }
}

async function work(run: Run & { plan: ImportPlan; staged: Staged }): Promise<SendingEnd> {
  await condition(allHandlersFinished)
  const end = await sendAll(run)
  if (end.how === 'stopped' || run.plan.kind !== 'retentions') return end
  if ((await prove(run)) === 'done') return end
  return { how: 'stopped', giveUp: false, why: 'stopped before it was proven; the same import goes on' }
}

async function prove({
  plan,
  progress,
  show,
  control,
}: Run & { plan: ImportPlan }): Promise<'stopped' | 'done'> {
  for (;;) {
    await control.mayGoOn()
    if (control.stopping) return 'stopped'
    progress.phase = 'proving'
    show()
    const audit = await control.untilInterrupted(() =>
      auditImport.executeWithOptions({ summary: 'hold every row against the service' }, [
        { ...refOf(plan), limits: progress.limits },
      ]),
    )
    if (audit !== 'interrupted') return 'done'
  }
}
