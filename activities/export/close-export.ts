import { dirname, join } from 'node:path'
import { missingHeader } from '../../core/destinations/csv/stage-notes.ts'
import { replaceFile } from '../../core/storage/durable.ts'
import { resolveInside } from '../../core/storage/inside.ts'
import { readParts } from '../../core/destinations/read-parts.ts'
import { writeSet } from '../../core/destinations/write-set.ts'
import { toReportPage } from '../../core/runs/view/html.ts'
import type { ActivityDeps } from '../deps.ts'
import { latestCheckpoint } from '../../core/exports/parts/checkpoint.ts'
import { leasesOf } from '../../core/exports/leases.ts'
import { ownerOf } from '../leases.ts'
import { toRunAccount } from '../../core/exports/run-view.ts'
import type { ExportPlan } from '../../core/exports/plan.ts'
import { reportFile } from '../../core/exports/report-files.ts'
import { missingPart } from '../../core/exports/parts/part-names.ts'
import { pruneParts } from '../../core/exports/parts/prune.ts'
import type { ExportReport, PublishedExport, ResourceResult } from '../../core/exports/report.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import type { PublishAgain } from '../../core/exports/input.ts'
import { partsFolder } from '../../core/exports/parts/read-folder.ts'
import type { RunRates } from '../../core/billing/run-rates.ts'

type Resource = ExportPlan['resources'][number]

/** Ends an export: its report, the note of what belongs together, and the claims freed. */
export function createCloseExport({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async function closeExport(input: {
    plan: ExportPlan
    results: ResourceResult[]
    /** Published again from kept parts: the export's own report stays. */
    again?: PublishAgain
  }): Promise<ExportReport> {
    const { plan, results, again } = input
    await refuseForeign({ deps, plan, results })
    const missing = await noteMissing({ deps, plan, results })
    const report = { ...toReport(plan.run, results), ...(missing && { missing }) }
    const place = { dataDir: deps.dataDir, run: plan.run }
    if (again === undefined) {
      await noteSet({ deps, plan, published: results.flatMap(publishedOf) })
      const page = reportFile({ ...place, ending: '.html' })
      // The page first: where there is a report, there is its page.
      await replaceFile(page, toReportPage(toRunAccount({ plan, report, folder: dirname(page) })))
      await replaceFile(reportFile({ ...place, ending: '.json' }), `${JSON.stringify(report, null, 2)}\n`)
    }
    for (const what of leasesOf(plan)) await deps.state.claims.release({ what, owner: ownerOf() })
    rates.end(plan)
    await pruneParts({ dataDir: deps.dataDir, now: Date.now() })
    deps.observer.did({ did: 'ended', run: plan.run, verdict: report.verdict })
    return report
  }
}

/** Results come back by way of Temporal: they may name only what the run publishes, and where it publishes it. */
async function refuseForeign(options: {
  deps: ActivityDeps
  plan: ExportPlan
  results: readonly ResourceResult[]
}): Promise<void> {
  const { plan, results } = options
  const root = publishedRoot(options)
  for (const resource of results
    .flatMap((result) => [result, ...publishedOf(result)])
    .map((one) => one.resource))
    if (!plan.resources.includes(resource))
      throw new InvalidInput(`results: the run ${plan.run} has no ${JSON.stringify(resource)}.`)
  for (const { manifest } of results.flatMap(publishedOf))
    if (manifest !== '' && (await resolveInside({ root, path: manifest })) === undefined)
      throw new InvalidInput(`results: the manifest ${manifest} does not lie in ${root}.`)
}

const publishedRoot = ({ deps, plan }: { deps: ActivityDeps; plan: ExportPlan }) =>
  plan.out ?? join(deps.dataDir, 'exports')

/** A sentence for each part of a resource that failed. */
function failuresOf(result: ResourceResult): string[] {
  if ('error' in result) return [`${result.resource} failed: ${result.error}`]
  if ('stopped' in result) return []
  return (result.failed ?? []).map((one) => `${result.resource} to ${one.destination} failed: ${one.error}`)
}

const unpublishedOf = (result: ResourceResult) =>
  'published' in result
    ? (result.unpublished ?? []).map((destination) => `${result.resource} to ${destination}`)
    : []

const publishedOf = (result: ResourceResult) => ('published' in result ? result.published : [])

/** Says which manifests of the run belong together; destinations without files have none. */
async function noteSet(options: {
  deps: ActivityDeps
  plan: ExportPlan
  published: readonly PublishedExport[]
}): Promise<void> {
  const { plan } = options
  const published = options.published
    .filter(({ manifest }) => manifest !== '')
    .map(({ manifest, ...one }) => ({ manifest: one, manifestPath: manifest }))
  if (published.length === 0) return
  const folder = publishedRoot(options)
  await writeSet({ folder, testMode: plan.identity.mode === 'test', run: plan.run, published })
}

/**
 * Writes the ids of a fetch that do not exist beside its report: a warehouse keeps no files, and people look for
 * them here.
 */
async function noteMissing(options: {
  deps: ActivityDeps
  plan: ExportPlan
  results: readonly ResourceResult[]
}): Promise<ExportReport['missing']> {
  const { deps, plan, results } = options
  const [published] = results.flatMap(publishedOf)
  if (published?.missing === undefined || published.missing.count === 0) return undefined
  const folder = partsFolder({ dataDir: deps.dataDir, run: plan.run, resource: published.resource })
  const { parts = [] } = (await latestCheckpoint(folder)) ?? {}
  const file = reportFile({ dataDir: deps.dataDir, run: plan.run, ending: '.missing.csv' })
  await replaceFile(file, [missingHeader, ...(await textsOf(parts.filter(isMissing)))].join(''))
  return { ...published.missing, file }
}

const isMissing = ({ table }: { table: string }) => table === missingPart

async function textsOf(parts: Parameters<typeof readParts>[0]): Promise<string[]> {
  const texts: string[] = []
  for await (const chunk of readParts(parts)) texts.push(chunk.toString('utf8'))
  return texts
}

function toReport(run: string, results: ResourceResult[]): ExportReport {
  const published = results.flatMap(publishedOf)
  const failed = results.flatMap(failuresOf)
  const stopped = results.flatMap((result) =>
    'stopped' in result ? [result.resource] : unpublishedOf(result),
  )
  const unproven = published.filter((one) => one.verdict === 'unproven')
  const proven = published.length - unproven.length
  const records = new Map(
    results.map((result) => [
      result.resource,
      'published' in result ? (result.published[0]?.records ?? 0) : 0,
    ]),
  )
  const total = [...records.values()].reduce((sum, count) => sum + count, 0)
  const parts = [
    `${proven} of ${published.length + failed.length + stopped.length} proven complete, ${total} records`,
    ...published.flatMap(({ resource, missing }, at) =>
      at === 0 && missing ? toMissing(resource, missing) : [],
    ),
    ...unproven.map((one) => `${one.resource} unproven: ${one.reasons.join(' ')}`),
    ...stopped.map((one) => `${one} stopped`),
    ...failed,
  ]
  const verdict =
    failed.length > 0
      ? 'failed'
      : stopped.length > 0
        ? 'stopped'
        : unproven.length > 0
          ? 'unproven'
          : 'proven'
  return { summary: parts.join('; '), run, verdict, exports: results }
}

/** Five ids are enough to see what is wrong with a list; the file has the others. */
function toMissing(resource: Resource, { count, first }: { count: number; first: string[] }): string[] {
  if (count === 0) return []
  const named = first.slice(0, 5).join(', ')
  return [`${count} ${resource} do not exist: ${named}${count > 5 ? ', ...' : ''}`]
}
