import { relative, sep } from 'node:path'
import type { Reference } from '../destinations/manifest.ts'
import { InvalidInput } from '../runs/errors.ts'
import { toReportPage } from '../runs/view/html.ts'
import type { View } from '../runs/view/view.ts'
import { replaceFile } from '../storage/durable.ts'
import type { FileStore } from '../storage/file-store.ts'
import { exportNextSteps } from './next-steps.ts'
import type { ExportPlan } from './plan.ts'
import {
  type ExportedItem,
  type ExportReport,
  isPublished,
  reportFile,
  toPublished,
  toReport,
} from './report.ts'
import { toExportPage } from './page.ts'
import { sheetOf, type Sheets } from './sheet.ts'
import { toExportView } from './view.ts'

/**
 * Writes the report of an export and its HTML page. A run that publishes to a store has copies of them there.
 *
 * @throws {InvalidInput} a result names a resource that the run does not read, or a publication that it has not made
 */
export async function closeExport(options: {
  dataDir: string
  /** Where files are published; undefined for the data folder. */
  files: FileStore | undefined
  plan: ExportPlan
  exports: readonly ExportedItem[]
  references?: Reference[]
  sheets: Sheets
  /** The run whose report it is: the export itself, or the run that published its parts again. */
  name: string
}): Promise<{ report: ExportReport; view: View }> {
  const { dataDir, plan, references = [], sheets, name } = options
  const files = options.files?.locate('') === plan.files ? options.files : undefined
  const exports = options.exports.map((item) => toItem(plan, sheets, item))
  const { startedAt, identity } = plan
  const page = reportFile({ dataDir, run: name, ending: '.html' })
  const report: ExportReport = {
    ...toReport(plan.run, exports),
    startedAt,
    identity,
    next: exportNextSteps({ plan, exports }),
    page,
    ...(references.length > 0 && { references }),
    ...(plan.files !== undefined && { files: plan.files }),
  }
  const view = toExportView(report)
  // The page is written first, so that a report never exists without its page.
  await replaceFile(page, toReportPage(toExportPage(report, sheets)))
  const json = reportFile({ dataDir, run: name, ending: '.json' })
  await replaceFile(json, `${JSON.stringify(report, null, 2)}\n`)
  for (const file of [page, json]) await files?.put(relative(dataDir, file).split(sep).join('/'), file)
  return { report, view }
}

/**
 * A result as the report has it. It comes from Temporal, so it is untrusted: what was published, the note of the
 * publication says.
 */
function toItem(plan: ExportPlan, sheets: Sheets, item: ExportedItem): ExportedItem {
  const { resource, destination, verdict, reasons } = item
  if (!plan.resources.includes(resource))
    throw new InvalidInput(`exports: the run ${plan.run} has no ${JSON.stringify(resource)}.`)
  if (!isPublished(item)) return { resource, destination, verdict, reasons } as ExportedItem
  const sheet = sheets[sheetOf(resource, item.destination)]
  if (sheet === undefined)
    throw new InvalidInput(`exports: the run ${plan.run} did not publish ${resource} to ${destination}.`)
  return toPublished(resource, sheet)
}
