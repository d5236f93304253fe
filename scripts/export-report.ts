import { readFile } from 'node:fs/promises'
import type { ExportReport, ResourceResult } from '../activities/close-export.ts'
import type { Settings } from '../worker/settings.ts'
import { exitCodes } from './terminal/failures.ts'
import { formatTable } from './terminal/format.ts'
import type { Terminal } from './terminal/terminal.ts'

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
  const reasons = report.exports.flatMap(toReasons)
  const text = [formatTable({ head, rows }), ...reasons].join('\n')
  const exports = await Promise.all(report.exports.flatMap(toDocuments))
  terminal.result({ document: { run: report.run, summary: report.summary, exports }, text })
  process.exitCode = codeOf[report.verdict]
}

function toRows(result: ResourceResult): (string | number)[][] {
  const { resource } = result
  if ('error' in result) return [[resource, '', 'failed', '', '']]
  if ('stopped' in result) return [[resource, '', 'stopped', '', '']]
  return [
    ...result.published.map((one) => [resource, one.destination, one.verdict, one.records, one.where]),
    ...(result.failed ?? []).map((one) => [resource, one.destination, 'failed', '', '']),
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
