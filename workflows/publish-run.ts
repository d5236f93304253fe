import {
  ApplicationFailure,
  CancellationScope,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow'
import type { ExportReport } from '../core/exports/report.ts'
import type { Activities } from '../activities/index.ts'
import { republishing } from './run/activity-options.ts'
import type { PublishAgainInput } from '../core/exports/input.ts'
import { createSearchAttributes } from './run/search-attributes.ts'
import { needsPerson } from './run/needs-person.ts'
import { createNotifier } from './run/notify.ts'
import { publishEach } from './run/publish-each.ts'
import { controlRun } from './run/control.ts'
import { escapeMarkdown } from './run/markdown.ts'
import { refOf } from './run/ref-of.ts'
import { stoppedReport } from './run/stopped-report.ts'
import { notifyOfExport } from './run/notify-export.ts'

const { openPublish, publishExport, closeExport } = proxyActivities<Activities>(republishing)

/**
 * Publishes the kept parts of an export again, to the same or other destinations, without asking the service. A
 * resource or a destination that fails does not stop the others. A stop or a pause ends what is being published, of
 * which nothing is visible then; what is published already stays.
 */
export async function publishRun(input: PublishAgainInput): Promise<ExportReport> {
  const { workflowId, runId } = workflowInfo()
  const owner = { workflowId, runId }
  const show = (does: string) => setCurrentDetails(`${does} from kept parts; the service is not asked.`)
  show('Publishing')
  const control = controlRun({
    text: { between: 'two publications', kept: 'what is published stays' },
    onChange: (now) =>
      show(now.stopping ? 'Stopping to publish' : now.paused ? '**Paused**: publishes' : 'Publishing'),
  })
  const notifier = createNotifier()
  const attributes = createSearchAttributes()
  return CancellationScope.nonCancellable(async () => {
    const opened = await control.unlessStopped(() => openPublish(input))
    if (opened === undefined) return stoppedReport('published')
    const { plan, again, checkpoints } = opened
    notifier.allow(plan)
    attributes.allow(plan)
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
    const report = await closeExport({ ...refOf(plan), again, results })
    setCurrentDetails(escapeMarkdown(report.summary))
    attributes.set({ verdict: report.verdict, needsPerson: needsPerson(report) })
    if (results.every((result) => 'error' in result))
      throw ApplicationFailure.nonRetryable(report.summary, 'ExportFailed', report)
    await notifyOfExport({ notifier, report })
    return report
  }).catch(notifier.fail)
}
