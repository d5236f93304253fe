import {
  ApplicationFailure,
  CancellationScope,
  defineQuery,
  proxyActivities,
  rootCause,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import type { OpenedExport } from '../activities/export/open.ts'
import type { Activities } from '../activities/index.ts'
import type { ExportInput, FetchInput, PublishAgainInput } from '../core/exports/input.ts'
import type { ExportPlan } from '../core/exports/plan.ts'
import type { ExportedItem, ExportReport, PublishedExport } from '../core/exports/report.ts'
import { toMarkdown } from '../core/runs/view/markdown.ts'
import { type ExportProgress, type ListProgress, toLiveExport } from './export-view.ts'
import { readList } from './read-list.ts'
import {
  checkingReferences,
  closing,
  opening,
  openingFetch,
  publishing,
  republishing,
} from './run/activity-options.ts'
import { controlRun, type ControlText, type RunControl } from './run/control.ts'
import { allowHeartbeats } from './run/heartbeats.ts'
import { createNotifier, type Notifier, scheduledBy } from './run/notify.ts'
import { refOf } from './run/run-ref.ts'
import { createSearchAttributes } from './run/search-attributes.ts'
import { showTroubles } from './run/troubles.ts'
import { rethrowBug } from './run/unwrap-failure.ts'

const { openExport, openPublish } = proxyActivities<Activities>(opening)
const { openFetch } = proxyActivities<Activities>(openingFetch)
const { publishExport } = proxyActivities<Activities>(publishing)
const { publishExport: publishAgain } = proxyActivities<Activities>(republishing)
const { checkReferences } = proxyActivities<Activities>(checkingReferences)
const { closeExport } = proxyActivities<Activities>(closing)

const status = defineQuery<ExportProgress>('status')

/**
 * Exports lists of the service to their destinations. The report says for each list whether the export is proven
 * complete. A list that fails does not stop the others.
 */
export async function exportData(input?: ExportInput | null): Promise<ExportReport> {
  const summary = 'check input, service and data folder'
  return exportRun({
    name: 'export',
    control: { between: 'two pages, or before it publishes', kept: 'what was read is kept' },
    stoppedEarly: 'Stopped before anything was read',
    open: () => openExport.executeWithOptions({ summary }, [input ?? {}, scheduledBy()]),
  })
}

/**
 * Fetches credit notes or cancellations by id, from a list or a column of a file, and publishes them like an
 * export. Proven if the service returned each document or said that it does not exist.
 */
export async function fetchDocuments(input?: FetchInput | null): Promise<ExportReport> {
  const summary = 'check input, ids, service and data folder'
  return exportRun({
    name: 'fetch',
    control: { between: 'two requests, or before it publishes', kept: 'what was read is kept' },
    stoppedEarly: 'Stopped before anything was read',
    open: () => openFetch.executeWithOptions({ summary }, [input ?? {}]),
  })
}

/**
 * Publishes the retained parts of an export again, to the same or other destinations, without calling the service.
 * A stop or a pause abandons the publication in progress, which leaves nothing visible; finished publications stay.
 */
export async function publishRun(input: PublishAgainInput): Promise<ExportReport> {
  const summary = 'check input and retained parts'
  return exportRun({
    name: 'publication',
    control: { between: 'two publications', kept: 'what is published stays' },
    stoppedEarly: 'Stopped before anything was published',
    open: () => openPublish.executeWithOptions({ summary }, [input]),
  })
}

/**
 * Opens a plan of reading and publishing, reads and publishes its lists side by side, and writes the report. A list or
 * a destination that fails does not stop the others. A list whose read is already complete is only published.
 */
async function exportRun(job: {
  name: ExportProgress['name']
  control: ControlText
  /** The summary of a run that was stopped while its input was checked, before any step could write a report. */
  stoppedEarly: string
  open: () => Promise<OpenedExport>
}): Promise<ExportReport> {
  const { name } = job
  const progress: ExportProgress = { name, phase: 'checking', resources: [] }
  const show = () => {
    if (progress.phase !== 'ended') setCurrentDetails(toMarkdown(toLiveExport(progress)))
  }
  const showPhase = ({ stopping, paused }: RunControl) => {
    progress.phase = stopping ? 'stopping' : paused ? 'paused' : 'running'
    show()
  }
  const control = controlRun({ text: job.control, onChange: showPhase })
  setHandler(status, () => progress, {
    description: 'The progress of the run: its phase, and each list with its counts or its result.',
  })
  showTroubles(progress, show)
  show()
  const notifier = createNotifier()
  const attributes = createSearchAttributes()

  return CancellationScope.nonCancellable(async (): Promise<ExportReport> => {
    const opened = await control.unlessStopped(job.open).catch(attributes.failUnopened)
    if (opened === undefined) {
      progress.phase = 'ended'
      progress.summary = job.stoppedEarly
      setCurrentDetails(job.stoppedEarly)
      return {
        summary: job.stoppedEarly,
        run: workflowInfo().workflowId,
        verdict: 'stopped',
        exports: [],
      } as const
    }
    const { plan, again } = opened
    notifier.allow(plan)
    attributes.allow(plan)
    allowHeartbeats(plan)
    attributes.set({ resources: plan.resources })
    progress.run = plan.run
    progress.identity = plan.identity
    progress.to = plan.to
    progress.resources = plan.resources.map((resource) => ({
      resource,
      state: again === undefined ? 'reading' : 'publishing',
    }))
    showPhase(control)

    const listOf = (resource: Resource) => progress.resources[plan.resources.indexOf(resource)]!
    const reads = readInOrder(opened, (resource) =>
      readList({ plan, resource, list: listOf(resource), show, control }),
    )
    const lists = plan.resources.map((resource) =>
      exportList({ opened, resource, list: listOf(resource), reads, show, control }),
    )
    const exports = (await Promise.all(lists)).flat()

    const { report, view } = await closeExport
      .executeWithOptions({ summary: 'write the report' }, [
        { ...refOf(plan), ...(again && { again }), exports },
      ])
      .catch(attributes.failUnreported)
    attributes.set({ verdict: report.verdict, needsPerson: needsPerson(report) })
    progress.phase = 'ended'
    progress.summary = report.summary
    setCurrentDetails(toMarkdown(view))
    if (exports.every((one) => one.verdict === 'failed')) {
      const failed = report.summary.replace(/\.$/, '')
      throw ApplicationFailure.nonRetryable(`${failed}. Run the same ${name} again.`, 'ExportFailed', report)
    }
    await notifyOfExport({ notifier, report })
    return report
  }).catch(notifier.fail)
}

type Resource = ExportPlan['resources'][number]

/** The reads of a run: the checkpoint to publish of each; undefined if the run was stopped first. */
type Reads = ReadonlyMap<Resource, Promise<string | undefined>>

/** Begins each read, unless it is already complete, when those of the lists have ended whose records name its own. */
export function readInOrder(
  { plan, readAfter = {}, checkpoints = {} }: OpenedExport,
  read: (resource: Resource) => Promise<string | undefined>,
): Reads {
  const reads = new Map<Resource, Promise<string | undefined>>()
  const begin = async (resource: Resource) => {
    if (checkpoints[resource] !== undefined) return checkpoints[resource]
    await Promise.allSettled((readAfter[resource] ?? []).map(readOf))
    return await read(resource)
  }
  const readOf = (resource: Resource) => {
    const begun = reads.get(resource) ?? begin(resource)
    reads.set(resource, begun)
    return begun
  }
  for (const resource of plan.resources) void readOf(resource)
  return reads
}

/** Checks the references of a list once the lists are read that it names. A failure leaves them unchecked. */
async function checkNamed(options: {
  opened: OpenedExport
  resource: Resource
  reads: Reads
  control: RunControl
}): Promise<void> {
  const { opened, resource, reads, control } = options
  const { plan, readAfter = {} } = opened
  const named = Object.entries(readAfter).flatMap(([name, after]) =>
    after.includes(resource) ? [name as Resource] : [],
  )
  if (named.length === 0) return
  const checkpoints: Partial<Record<Resource, string>> = {}
  for (const one of [resource, ...named]) {
    const checkpoint = await reads.get(one)?.catch(() => undefined)
    if (checkpoint !== undefined) checkpoints[one] = checkpoint
  }
  const summary = `check the references of ${resource}`
  const check = () =>
    checkReferences.executeWithOptions({ summary }, [{ ...refOf(plan), resource, checkpoints }])
  await control.unlessStopped(check).catch(rethrowBug)
}

/** Publishes one list once it is read. Its failure is its result. */
async function exportList(options: {
  opened: OpenedExport
  resource: Resource
  list: ListProgress
  reads: Reads
  show: () => void
  control: RunControl
}): Promise<ExportedItem[]> {
  const { opened, resource, list, reads, show, control } = options
  const { plan, again } = opened
  const end = (exports: ExportedItem[]) => {
    Object.assign(list, toEnd(exports))
    show()
    return exports
  }
  try {
    const checkpoint = await reads.get(resource)
    if (checkpoint === undefined)
      return end([{ resource, destination: null, verdict: 'stopped', reasons: [] }])
    await checkNamed({ opened, resource, reads, control })
    list.state = 'publishing'
    show()
    const step = again === undefined ? publishExport : publishAgain
    return end(
      await publishEach({
        resource,
        to: plan.to,
        publish: (destination) =>
          control.unlessStopped(() =>
            step.executeWithOptions({ summary: `publish ${resource} to ${destination}` }, [
              { ...refOf(plan), ...(again && { again }), resource, destination, checkpoint },
            ]),
          ),
      }),
    )
  } catch (error) {
    rethrowBug(error)
    const reason = rootCause(error) ?? String(error)
    return end([{ resource, destination: null, verdict: 'failed', reasons: [reason] }])
  }
}

/**
 * Publishes a finished read to each of its destinations. A destination that fails does not affect the others: every
 * result is awaited and reported.
 */
async function publishEach(options: {
  resource: Resource
  to: ExportPlan['to']
  /** Undefined if the run was stopped first. */
  publish: (destination: ExportPlan['to'][number]) => Promise<PublishedExport | undefined>
}): Promise<ExportedItem[]> {
  const { resource, to, publish } = options
  const exports = await Promise.all(
    to.map(async (destination): Promise<ExportedItem> => {
      try {
        return (await publish(destination)) ?? { resource, destination, verdict: 'stopped', reasons: [] }
      } catch (error) {
        rethrowBug(error)
        return { resource, destination, verdict: 'failed', reasons: [rootCause(error) ?? String(error)] }
      }
    }),
  )
  if (exports.some(isPublished)) return exports
  // Destinations that failed with the same message are reported once.
  const reasons = [...new Set(exports.flatMap((one) => one.reasons))]
  return [{ resource, destination: null, verdict: reasons.length > 0 ? 'failed' : 'stopped', reasons }]
}

const isPublished = (item: ExportedItem): item is PublishedExport =>
  item.verdict === 'proven' || item.verdict === 'unproven'

/** How a list ended, for the progress of its run. */
function toEnd(exports: readonly ExportedItem[]): Partial<ListProgress> {
  const [failed, stopped] = (['failed', 'stopped'] as const).map((verdict) =>
    exports.filter((one) => one.verdict === verdict),
  )
  const say = ({ destination, reasons }: ExportedItem) =>
    `${destination === null ? '' : `${destination}: `}${reasons.join(' ')}`
  if (failed!.length > 0) return { state: 'failed', reason: failed!.map(say).join(' ') }
  if (stopped!.length > 0) {
    const unpublished = stopped!.flatMap(({ destination }) => destination ?? [])
    return {
      state: 'stopped',
      ...(unpublished.length > 0 && { reason: `not published to ${unpublished.join(', ')}` }),
    }
  }
  const [first] = exports.filter(isPublished)
  return {
    state: first?.verdict ?? 'unproven',
    records: first?.records ?? 0,
    reason: first?.reasons.join(' ') ?? '',
  }
}

/** Whether a person has something to do. Not after a stop, which a person caused, nor for what is merely worth a notice. */
export function needsPerson({ verdict, missing, exports }: ExportReport): boolean {
  const isHeldBack = exports.some((one) => isPublished(one) && one.heldBack > 0)
  return verdict === 'failed' || verdict === 'unproven' || missing !== undefined || isHeldBack
}

/** Notifies people of the end of a run that did not fail as a whole. */
async function notifyOfExport(ended: { notifier: Notifier; report: ExportReport }): Promise<void> {
  const { notifier, report } = ended
  const { verdict, exports } = report
  // The destinations of a list share most of them.
  const warnings = [...new Set(exports.filter(isPublished).flatMap((one) => one.warnings))]
  const parts = [report.summary, ...warnings].map((text) => text.replace(/\.$/, ''))
  const summary = warnings.length === 0 ? report.summary : parts.join('; ')
  // If only some of the lists failed, the run completes, so the failure is notified here.
  const isBad = verdict === 'failed' || verdict === 'unproven'
  await notifier.notify({
    kind: isBad ? verdict : warnings.length > 0 ? 'attention' : 'ended',
    summary,
    report,
  })
}
