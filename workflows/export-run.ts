import {
  ApplicationFailure,
  CancellationScope,
  defineQuery,
  getExternalWorkflowHandle,
  proxyActivities,
  rootCause,
  setCurrentDetails,
  setHandler,
  startChild,
  workflowInfo,
} from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { allowHeartbeats } from './run/heartbeats.ts'
import { closing } from './run/activity-options.ts'
import type { Opened } from '../core/notifications/opened.ts'
import type { ExportPlan } from '../core/exports/plan.ts'
import type { ExportReport, ResourceResult } from '../core/exports/report.ts'
import { exportResource } from './export-resource.ts'
import { type ExportProgress, toLiveExport } from './export-view.ts'
import { toMarkdown } from '../core/runs/view/markdown.ts'
import { needsPerson } from './run/needs-person.ts'
import { createSearchAttributes } from './run/search-attributes.ts'
import { createNotifier } from './run/notify.ts'
import { controlRun, type RunControl } from './run/control.ts'
import { showTroubles } from './run/troubles.ts'
import { rethrowBug } from './run/unwrap-failure.ts'
import { refOf } from './run/run-ref.ts'
import { stoppedReport } from './run/stopped-report.ts'
import { notifyOfExport } from './run/notify-export.ts'

const { closeExport } = proxyActivities<Activities>(closing)

const status = defineQuery<ExportProgress>('status')

/**
 * Executes a plan of reading and publishing, each resource in a child run of its own. The report says for each
 * whether it is proven complete. A resource that fails does not stop the others.
 */
export async function exportRun(options: {
  name: 'export' | 'fetch'
  open: () => Promise<Opened<ExportPlan>>
}): Promise<ExportReport> {
  const { name, open } = options
  const progress: ExportProgress = { name, phase: 'checking', resources: [] }
  const show = () => setCurrentDetails(toMarkdown(toLiveExport(progress)))
  const children = new Map<string, string>()
  const control = controlRun({
    onChange: (now) => {
      progress.phase = now.stopping ? 'stopping' : now.paused ? 'paused' : 'running'
      show()
      const signal = now.stopping ? 'stop' : now.paused ? 'pause' : 'unpause'
      // The signal may fail: a child that has just ended has nothing left to pause.
      for (const id of children.values()) void tell(id, signal)
    },
  })
  setHandler(status, () => progress, {
    description: 'The progress of the run: its phase, and each resource with its result.',
  })
  showTroubles(progress, () => progress.phase !== 'ended' && show())
  show()
  const notifier = createNotifier()
  const attributes = createSearchAttributes()

  return CancellationScope.nonCancellable(async () => {
    const plan = await control.unlessStopped(open)
    if (plan === undefined) {
      progress.phase = 'ended'
      return stoppedReport('read')
    }
    notifier.allow(plan)
    attributes.allow(plan)
    allowHeartbeats(plan)
    attributes.set({ resources: plan.resources })
    progress.phase = control.stopping ? 'stopping' : control.paused ? 'paused' : 'running'
    progress.run = plan.run
    progress.identity = plan.identity
    progress.resources = plan.resources.map((resource) => ({ resource, state: 'reading' }))
    show()

    const results = await Promise.all(
      plan.resources.map(async (resource): Promise<ResourceResult> => {
        await control.mayContinue()
        const result = control.stopping
          ? ({ resource, stopped: true } as const)
          : await runChild({ plan, resource, children, control })
        const row = progress.resources.find((row) => row.resource === resource)
        if (row !== undefined) Object.assign(row, toRow(result))
        show()
        return result
      }),
    )

    const { report, view } = await closeExport.executeWithOptions({ summary: 'write the report' }, [
      { ...refOf(plan), results },
    ])
    attributes.set({ verdict: report.verdict, needsPerson: needsPerson(report) })
    progress.phase = 'ended'
    progress.summary = report.summary
    setCurrentDetails(toMarkdown(view))
    if (results.every((result) => 'error' in result)) {
      const failed = report.summary.replace(/\.$/, '')
      throw ApplicationFailure.nonRetryable(`${failed}. Run the same ${name} again.`, 'ExportFailed', report)
    }
    await notifyOfExport({ notifier, report })
    return report
  }).catch(notifier.fail)
}

async function runChild(options: {
  plan: Opened<ExportPlan>
  resource: ExportPlan['resources'][number]
  /** The workflow ids of the children that can be signalled, by resource. */
  children: Map<string, string>
  control: RunControl
}): Promise<ResourceResult> {
  const { plan, resource, children, control } = options
  const workflowId = `${workflowInfo().workflowId}/${resource}`
  try {
    const child = await startChild(exportResource, {
      workflowId,
      // After a reset, the previous execution's child may still be running: this one replaces it.
      workflowIdReusePolicy: 'TERMINATE_IF_RUNNING',
      args: [{ plan, resource }],
      staticSummary: `${resource} to ${plan.to.join(', ')}`,
    })
    children.set(resource, workflowId)
    // A signal sent before the child existed did not reach it.
    if (control.stopping) await tell(workflowId, 'stop')
    else if (control.paused) await tell(workflowId, 'pause')
    return await child.result()
  } catch (error) {
    rethrowBug(error)
    const cause = rootCause(error) ?? String(error)
    return { resource, error: cause }
  } finally {
    children.delete(resource)
  }
}

/** Shielded from cancellation: Request Cancellation reaches the children as `stop`. */
async function tell(workflowId: string, signal: 'pause' | 'unpause' | 'stop'): Promise<void> {
  await CancellationScope.nonCancellable(() =>
    getExternalWorkflowHandle(workflowId).signal(signal).catch(rethrowBug),
  )
}

function toRow(result: ResourceResult): Partial<ExportProgress['resources'][number]> {
  if ('error' in result) return { state: 'failed', reason: result.error }
  if ('stopped' in result) return { state: 'stopped' }
  if (result.unpublished !== undefined && result.failed === undefined)
    return { state: 'stopped', reason: `not published to ${result.unpublished.join(', ')}` }
  if (result.failed !== undefined)
    return {
      state: 'failed',
      reason: result.failed.map(({ destination, error }) => `${destination}: ${error}`).join(' '),
    }
  const first = result.published[0]
  return {
    state: first?.verdict ?? 'unproven',
    records: first?.records ?? 0,
    reason: first?.reasons.join(' ') ?? '',
  }
}
