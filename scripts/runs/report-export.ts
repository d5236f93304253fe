import { readFile } from 'node:fs/promises'
import type { ExportReport, ResourceResult } from '../../core/exports/report.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { exitCodes } from '../terminal/failures.ts'
import { formatTable } from '../terminal/format.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

const codeOf = {
  proven: exitCodes.proven,
  unproven: exitCodes.unproven,
  stopped: exitCodes.unproven,
  failed: exitCodes.failed,
} as const

/** Tells how an export ended, and sets the exit code it earned. */
export async function reportExport(options: {
  report: ExportReport
  terminal: Terminal
  settings: Settings
}): Promise<void> {
  const { report, terminal } = options
  const rows = report.exports.flatMap(toRows)
  const head = ['resource', 'to', 'verdict', 'records', 'where']
  const reasons = [...report.exports.flatMap(toReasons), ...toAdvice(report)]
  const text = [formatTable({ head, rows }), ...reasons, ...toMissing(report)].join('\n')
  const exports = await Promise.all(report.exports.flatMap(toDocuments))
  const { run, summary, missing } = report
  terminal.result({ document: { run, summary, exports, ...(missing && { missing }) }, text })
  // What was asked for and does not exist is for a person to look at, however well proven that is.
  const code = codeOf[report.verdict]
  process.exitCode = code === exitCodes.proven && missing !== undefined ? exitCodes.unproven : code
}

function toMissing({ missing }: ExportReport): string[] {
  if (missing === undefined) return []
  const { count, first, file } = missing
  const ids = count === 1 ? '1 id does not exist' : `${count} ids do not exist`
  return [`${ids}: ${first.join(', ')}${count > first.length ? ', ...' : ''} (${file})`]
}

function toRows(result: ResourceResult): (string | number)[][] {
  const { resource } = result
  if ('error' in result) return [[resource, '', 'failed', '', '']]
  if ('stopped' in result) return [[resource, '', 'stopped', '', '']]
  return [
    ...result.published.map((one) => [resource, one.destination, one.verdict, one.records, one.where]),
    ...(result.failed ?? []).map((one) => [resource, one.destination, 'failed', '', '']),
    ...(result.unpublished ?? []).map((destination) => [resource, destination, 'stopped', '', '']),
  ]
}

/** What was read for a destination that failed is kept: it need not be read again. */
function toAdvice({ run, exports }: ExportReport): string[] {
  const failed = exports.flatMap((one) => ('published' in one ? (one.failed ?? []) : []))
  const destinations = [...new Set(failed.map(({ destination }) => destination))]
  if (destinations.length === 0) return []
  return [
    `When that is mended, without reading again: ${shell`connector publish ${run} --to ${destinations.join(',')}`}`,
  ]
}

function toReasons(result: ResourceResult): string[] {
  const { resource } = result
  if ('error' in result) return [`${result.resource}: ${result.error}`]
  if ('stopped' in result)
    return [`${result.resource}: stopped; the same command goes on from what was read.`]
  return [
    ...result.published.flatMap((one) =>
      [...one.reasons, ...one.warnings].map((sentence) => `${one.resource}: ${sentence}`),
    ),
    ...(result.failed ?? []).map((one) => `${resource} to ${one.destination}: ${one.error}`),
  ]
}

function toDocuments(result: ResourceResult): Promise<unknown>[] {
  const { resource } = result
  if ('error' in result) return [Promise.resolve({ resource, error: result.error })]
  if ('stopped' in result) return [Promise.resolve({ resource, error: 'stopped' })]
  return [
    // A warehouse keeps its manifests in a table, which the command line has no need to open.
    ...result.published.map(async ({ manifest, ...one }) =>
      manifest === '' ? one : (JSON.parse(await readFile(manifest, 'utf8')) as unknown),
    ),
    ...(result.failed ?? []).map((one) => Promise.resolve({ resource, ...one })),
  ]
}
