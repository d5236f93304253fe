import { dirname, join, relative, sep } from 'node:path'
import { type Account, pageName, type Problem } from '../reports/account.ts'
import { formatTime } from '../reports/format.ts'
import type { ExportReport, ResourceResult } from './close-export.ts'
import type { ExportPlan } from './export-plan.ts'

const verdicts: Readonly<Record<ExportReport['verdict'], Account['verdict']>> = {
  proven: {
    word: 'proven',
    tone: 'good',
    meaning: 'Each read is proven; its own page says of which records, and up to which moment.',
  },
  unproven: {
    word: 'unproven',
    tone: 'doubtful',
    meaning:
      'All that came was published, but some reads are not proven: records may be missing. Run it again.',
  },
  stopped: {
    word: 'stopped',
    tone: 'neutral',
    meaning:
      'Somebody ended it. The same export resumes from what was read, within an hour of when the read began.',
  },
  failed: {
    word: 'failed',
    tone: 'bad',
    meaning:
      'Something was not published. Mend what is told below and run it again: it goes on from what was read.',
  },
}

/** A whole export in words, for the page beside its report. */
export function toRunAccount(options: { plan: ExportPlan; report: ExportReport; folder: string }): Account {
  const { plan, report, folder } = options
  const { mode, workspace, baseUrl } = plan.identity
  const published = report.exports.flatMap((result) => ('published' in result ? result.published : []))
  return {
    title: `Export of ${plan.resources.join(', ')}`,
    run: report.run,
    identity: { mode, workspace, baseUrl },
    verdict: verdicts[report.verdict],
    problems: report.exports.flatMap(toProblems),
    counts: [],
    tables: [
      {
        title: 'Lists',
        head: ['list', 'to', 'verdict', 'records'],
        rows: published.map(({ resource, destination, verdict, records }) => [
          resource,
          destination,
          verdict,
          records,
        ]),
      },
    ].filter(({ rows }) => rows.length > 0),
    facts: [{ name: 'begun', value: formatTime(plan.startedAt) }],
    files: published
      .filter(({ manifest }) => manifest !== '')
      .map(({ manifest, resource, destination }) => ({
        name: relative(folder, join(dirname(manifest), pageName))
          .split(sep)
          .join('/'),
        about: `${resource}, ${destination}`,
      })),
  }
}

function toProblems(result: ResourceResult): Problem[] {
  const { resource } = result
  if ('error' in result) return [{ what: `${resource} failed: ${result.error}` }]
  if ('stopped' in result) return [{ what: `${resource} was stopped before it was published.` }]
  const unpublished = (result.unpublished ?? []).map((destination) => ({
    what: `${resource} was stopped before it was published to ${destination}.`,
  }))
  return [
    ...unpublished,
    ...(result.failed ?? []).map(({ destination, error }) => ({
      what: `${resource} was not published to ${destination}: ${error}`,
    })),
    ...result.published
      .filter(({ verdict }) => verdict === 'unproven')
      .map(({ destination, reasons }) => ({
        what: `${resource} in ${destination} is not proven.`,
        details: reasons,
      })),
    ...result.published.flatMap(({ warnings }) => warnings.map((what) => ({ what }))),
  ]
}
