import { proxyActivities } from '@temporalio/workflow'
import type { ExportReport } from '../core/exports/report.ts'
import type { Activities } from '../activities/index.ts'
import { openingFetch } from './run/activity-options.ts'
import type { FetchInput } from '../core/exports/input.ts'
import { exportRun } from './export-run.ts'

const { openFetch } = proxyActivities<Activities>(openingFetch)

/**
 * Fetches credit notes or cancellations by id, from a list or a column of a file, and publishes them like an
 * export. Proven if the service returned each document or said that it does not exist.
 */
export async function fetchDocuments(input?: FetchInput | null): Promise<ExportReport> {
  const summary = 'check input, ids, service and data folder'
  return exportRun({ name: 'fetch', open: () => openFetch.executeWithOptions({ summary }, [input ?? {}]) })
}
