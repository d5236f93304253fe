import { join, relative, sep } from 'node:path'
import type { Reference } from '../destinations/manifest.ts'
import { missingHeader } from '../destinations/files/csv.ts'
import { readParts } from '../destinations/parts.ts'
import { InvalidInput } from '../runs/errors.ts'
import { toReportPage } from '../runs/view/html.ts'
import type { View } from '../runs/view/view.ts'
import { replaceFile } from '../storage/durable.ts'
import type { FileStore } from '../storage/file-store.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { resolveInside } from '../storage/inside.ts'
import { exportNextSteps } from './next-steps.ts'
import { latestCheckpoint } from './parts/checkpoint.ts'
import { fetchParts, missingPart } from './parts/chunks.ts'
import { partsFolder } from './parts/read-plan.ts'
import type { ExportPlan } from './plan.ts'
import { type ExportedItem, type ExportReport, isPublished, reportFile, toReport } from './report.ts'
import { toExportPage } from './page.ts'
import type { Sheets } from './sheet.ts'
import { toExportView } from './view.ts'

/**
 * Writes the report of an export and its HTML page. A run that publishes to a store has copies of them there.
 *
 * @throws {InvalidInput} a result names a resource or path that the run does not publish
 */
export async function closeExport(options: {
  dataDir: string
  shared: SharedFolder
  /** Where files are published; undefined for the data folder. */
  files: FileStore | undefined
  plan: ExportPlan
  exports: ExportedItem[]
  references?: Reference[]
  sheets?: Sheets
  /** The run whose report it is: the export itself, or the run that published its parts again. */
  name: string
}): Promise<{ report: ExportReport; view: View }> {
  const { dataDir, plan, exports, references = [], sheets = {}, name } = options
  const files = options.files?.locate('') === plan.files ? options.files : undefined
  await refuseForeign(options)
  const missing = await noteMissing(options)
  const { startedAt, identity } = plan
  const page = reportFile({ dataDir, run: name, ending: '.html' })
  const report: ExportReport = {
    ...toReport(plan.run, exports),
    startedAt,
    identity,
    next: exportNextSteps({ plan, exports }),
    page,
    ...(missing && { missing }),
    ...(references.length > 0 && { references }),
    ...(plan.files !== undefined && { files: plan.files }),
  }
  const view = toExportView(report)
  // The page is written first, so that a report never exists without its page.
  await replaceFile(page, toReportPage(toExportPage(report, sheets)))
  const json = reportFile({ dataDir, run: name, ending: '.json' })
  await replaceFile(json, `${JSON.stringify(report, null, 2)}\n`)
  for (const file of [missing?.file, page, json])
    if (file !== undefined) await files?.put(relative(dataDir, file).split(sep).join('/'), file)
  return { report, view }
}

/** Results come from Temporal, so they are untrusted: they may name only resources and paths that the run publishes. */
async function refuseForeign(options: {
  dataDir: string
  plan: ExportPlan
  exports: readonly ExportedItem[]
}): Promise<void> {
  const { plan, exports } = options
  const root = publishedRoot(options)
  for (const item of exports) {
    if (!plan.resources.includes(item.resource))
      throw new InvalidInput(`exports: the run ${plan.run} has no ${JSON.stringify(item.resource)}.`)
    if (isPublished(item) && item.manifest !== null && !(await liesIn(root, item.manifest)))
      throw new InvalidInput(`exports: the manifest ${item.manifest} does not lie in ${root}.`)
  }
}

async function liesIn(root: string, manifest: string): Promise<boolean> {
  if (!root.startsWith('s3://')) return (await resolveInside({ root, path: manifest })) !== undefined
  return manifest.startsWith(`${root}/`) && !manifest.split('/').includes('..')
}

const publishedRoot = ({ dataDir, plan }: { dataDir: string; plan: ExportPlan }) =>
  plan.files === undefined ? localRoot({ dataDir, plan }) : `${plan.files}/exports`

const localRoot = ({ dataDir, plan }: { dataDir: string; plan: ExportPlan }) =>
  plan.out ?? join(dataDir, 'exports')

/** Writes the nonexistent ids of a fetch beside its report, where people look for them: a warehouse keeps no files. */
async function noteMissing(options: {
  dataDir: string
  shared: SharedFolder
  plan: ExportPlan
  exports: readonly ExportedItem[]
  name: string
}): Promise<ExportReport['missing']> {
  const { dataDir, shared, plan, exports, name } = options
  const [published] = exports.filter(isPublished)
  if (published?.missing === undefined || published.missing.count === 0) return undefined
  const folder = partsFolder({ dataDir, run: plan.run, resource: published.resource })
  const { parts = [] } = (await latestCheckpoint({ shared, folder })) ?? {}
  const missing = parts.filter(({ table }) => table === missingPart)
  await fetchParts({ shared, parts: missing })
  const file = reportFile({ dataDir, run: name, ending: '.missing.csv' })
  const texts = await Array.fromAsync(readParts(missing), (chunk) => chunk.toString('utf8'))
  await replaceFile(file, [missingHeader, ...texts].join(''))
  return { ...published.missing, file }
}
