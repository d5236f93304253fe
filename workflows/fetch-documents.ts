import { proxyActivities } from '@temporalio/workflow'
import type { ExportReport } from '../activities/close-export.ts'
import type { Activities } from '../activities/index.ts'
import type { FetchInput } from '../activities/open-fetch.ts'
import { exportRun } from './export-run.ts'

const { openFetch } = proxyActivities<Activities>({
  // A stopped run has ended when its step has: what the step still does is in the report.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  startToCloseTimeout: '15 minutes',
  heartbeatTimeout: '5s',
  // A service or a disk that is away for some minutes is waited for; a refusal is not retried at all.
  retry: { initialInterval: '2s', maximumInterval: '1 minute', maximumAttempts: 15 },
})

/**
 * Fetches credit notes or cancellations by id, from a list or a column of a file, and publishes them as an export
 * is. Proven where each id was fetched, or answered by the service as one that does not exist.
 */
export async function fetchDocuments(input?: FetchInput | null): Promise<ExportReport> {
  const summary = 'check input, ids, service and data folder'
  return exportRun({ what: 'fetch', open: () => openFetch.executeWithOptions({ summary }, [input ?? {}]) })
}
