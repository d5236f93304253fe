import {
  ApplicationFailure,
  CancellationScope,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow'
import type { ExportReport } from '../activities/close-export.ts'
import type { Activities } from '../activities/index.ts'
import type { PublishAgainInput } from '../activities/open-publish.ts'
import { openMarks } from './marks.ts'
import { needsPerson } from './needs-person.ts'
import { openNotices } from './notices.ts'
import { publishEach } from './publish-each.ts'
import { refOf } from './ref-of.ts'
import { tellExport } from './tell-export.ts'

const { openPublish, publishExport, closeExport } = proxyActivities<Activities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '30s',
  retry: { initialInterval: '2s', maximumInterval: '1 minute', maximumAttempts: 15 },
})

/**
 * Publishes the kept parts of an export again, to the same or other destinations, without asking the service. A
 * resource or a destination that fails does not stop the others.
 */
export async function publishRun(input: PublishAgainInput): Promise<ExportReport> {
  const { workflowId, runId } = workflowInfo()
  const owner = { workflowId, runId }
  setCurrentDetails('Publishing from kept parts; the service is not asked.')
  const notices = openNotices()
  const marks = openMarks()
  return CancellationScope.nonCancellable(async () => {
    const { plan, again, checkpoints } = await openPublish(input)
    notices.listen(plan)
    marks.listen(plan)
    marks.set({ resources: plan.resources })
    const results = await Promise.all(
      checkpoints.map(({ resource, checkpoint }) =>
        publishEach({
          resource,
          to: plan.to,
          publish: (destination) =>
            publishExport.executeWithOptions({ summary: `publish ${resource} to ${destination}` }, [
              { ...refOf(plan), again, resource, destination, checkpoint, owner },
            ]),
        }),
      ),
    )
    const report = await closeExport({ ...refOf(plan), again, results })
    setCurrentDetails(report.summary)
    marks.set({ verdict: report.verdict, needsPerson: needsPerson(report) })
    if (results.every((result) => 'error' in result))
      throw ApplicationFailure.nonRetryable(report.summary, 'ExportFailed', report)
    await tellExport({ notices, report })
    return report
  }).catch(notices.fail)
}
