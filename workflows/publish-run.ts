import {
  ApplicationFailure,
  CancellationScope,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow'
import type { ExportReport } from '../core/exports/report.ts'
import type { Activities } from '../activities/index.ts'
import { allowHeartbeats } from './run/heartbeats.ts'
import { republishing } from './run/activity-options.ts'
import type { PublishAgainInput } from '../core/exports/input.ts'
import { createSearchAttributes } from './run/search-attributes.ts'
import { needsPerson } from './run/needs-person.ts'
import { createNotifier } from './run/notify.ts'
import { publishEach } from './run/publish-each.ts'
import { controlRun } from './run/control.ts'
import { toMarkdown } from '../core/runs/view/markdown.ts'
import { refOf } from './run/run-ref.ts'
import { stoppedReport } from './run/stopped-report.ts'
import { notifyOfExport } from './run/notify-export.ts'

const { openPublish, publishExport, closeExport } = proxyActivities<Activities>(republishing)

/**
 * Publishes the retained parts of an export again, to the same or other destinations, without calling the service.
 * A resource or destination that fails does not stop the others. A stop or a pause abandons the publication in
 * progress, which leaves nothing visible; finished publications stay.
 */
export async function publishRun(input: PublishAgainInput): Promise<ExportReport> {
  const { workflowId, runId } = workflowInfo()
  const owner = { workflowId, runId }
  const show = (state: string) =>
    setCurrentDetails(`${state} from retained parts; the service is not called.`)
  show('Publishing')
  const control = controlRun({
    text: { between: 'two publications', kept: 'what is published stays' },
    onChange: (now) =>
      show(now.stopping ? 'Stopping to publish' : now.paused ? '**Paused** publishing' : 'Publishing'),
  })
  const notifier = createNotifier()
  const attributes = createSearchAttributes()
  return CancellationScope.nonCancellable(async () => {
    const opened = await control.unlessStopped(() =>
      openPublish.executeWithOptions({ summary: 'check input and retained parts' }, [input]),
    )
    if (opened === undefined) return stoppedReport('published')
    const { plan, again, checkpoints } = opened
    notifier.allow(plan)
    attributes.allow(plan)
    allowHeartbeats(plan)
    attributes.set({ resources: plan.resources })
    const results = await Promise.all(
      checkpoints.map(({ resource, checkpoint }) =>
        publishEach({
          resource,
          to: plan.to,
          publish: (destination) =>
            control.unlessStopped(() =>
              publishExport.executeWithOptions({ summary: `publish ${resource} to ${destination}` }, [
                { ...refOf(plan), again, resource, destination, checkpoint, owner },
              ]),
            ),
        }),
      ),
    )
    const { report, view } = await closeExport.executeWithOptions({ summary: 'write the report' }, [
      { ...refOf(plan), again, results },
    ])
    setCurrentDetails(toMarkdown(view))
    attributes.set({ verdict: report.verdict, needsPerson: needsPerson(report) })
    if (results.every((result) => 'error' in result))
      throw ApplicationFailure.nonRetryable(report.summary, 'ExportFailed', report)
    await notifyOfExport({ notifier, report })
    return report
  }).catch(notifier.fail)
}
