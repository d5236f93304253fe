import type { Staged } from '../core/imports/run-files.ts'
import type { ImportLimits, ImportPlan } from '../core/imports/plan.ts'
import { sayCounts, sayPace, sayPhase, sayWaiting, sayWhere, toMinute } from './run/details.ts'
import { escapeMarkdown } from './run/markdown.ts'
import { sayParked } from './write-run/parked.ts'
import type { WriteProgress } from './write-run/progress.ts'

export interface ImportProgress extends WriteProgress<Staged> {
  kind?: ImportPlan['kind']
  file?: string
  limits: ImportLimits
}

const buttons = [
  '**Send a Signal**: `pause` halts between two changes, `unpause` resumes it; `stop`, like **Request Cancellation**, ends the run cleanly, with a report.',
  '**Send an Update**: `setLimits` changes rate, concurrency and bounds; `resolve` says what became of a parked row.',
  '**Terminate** ends it at once without a report. **Start Workflow Like This One** resumes with what is left, after a stop too. Nothing is sent twice, whichever is pressed.',
].join('\n\n')

function questionOf({ waitingFor, staged }: ImportProgress): string {
  if (waitingFor?.what === 'approval') return 'Nothing was sent yet.'
  if (waitingFor?.what === 'canary')
    return `Rows ${staged?.canary.join(', ')} were sent first: look at them in the service. Approve to send the others.`
  return 'Too many changes failed, so the breaker is open, and its trials failed too. Approve to try the others all the same.'
}

/** The Current Details of an import in the Temporal UI, as markdown: where it is, and what each button does. */
export function describeImport(progress: ImportProgress): string {
  const { identity, waitingFor, phase, summary, kind, file, nextAt } = progress
  const from = file === undefined ? [] : [`${kind} from ${escapeMarkdown(file)}`]
  const where = [...sayWhere(identity), ...from]
  if (phase === 'ended') return [...where, escapeMarkdown(summary ?? '')].join('\n\n')
  const what = 'import'
  const said =
    waitingFor === undefined
      ? [sayPhase({ what, phase, ...(nextAt !== undefined && { nextAt }) })]
      : sayWaiting({ ...waitingFor, what, why: questionOf(progress) })
  const breaker =
    progress.breakerUntil === undefined
      ? []
      : [
          `The breaker is open: too many changes failed, so it tries one at ${toMinute(progress.breakerUntil, 'seconds')}.`,
        ]
  return [
    ...where,
    ...said,
    ...breaker,
    ...sayParked(progress),
    ...sayPace({ pace: progress.pace, unit: 'rows' }),
    ...sayCounts({ counts: progress.counts, unit: 'rows' }),
    ...totalsOf(progress),
    buttons,
  ].join('\n\n')
}

function totalsOf({ staged }: ImportProgress): string[] {
  if (staged === undefined) return []
  const { rows, changes, invalid, totals } = staged
  const names = Object.keys(totals.sums)
  const line = (name: string, count: number, sums: Readonly<Record<string, string>>) =>
    // The UI sets the columns without a gap.
    `| ${name} | \u00a0\u00a0${count} | ${names.map((column) => `\u00a0\u00a0${sums[column] ?? ''}`).join(' | ')} |`
  const groups = Object.entries(totals.by?.values ?? {}).map(([value, group]) =>
    line(`${totals.by?.field}\u00a0${escapeMarkdown(value)}`, group.changes, group.sums),
  )
  return [
    `${rows} rows, ${changes} changes, ${invalid} invalid.`,
    [
      `| | \u00a0\u00a0changes | ${names.map((name) => `\u00a0\u00a0${name}`).join(' | ')} |`,
      `| --- | ---: | ${names.map(() => '---:').join(' | ')} |`,
      ...groups.slice(0, 20),
      line('all', changes, totals.sums),
    ].join('\n'),
  ]
}
