import type { Snapshot } from '../core/recoveries/run-files.ts'
import type { RecoveryLimits } from '../core/recoveries/plan.ts'
import { escapeMarkdown } from './run/markdown.ts'
import type { WaitingFor, WriteProgress } from './write-run/progress.ts'
import { sayCounts, sayPace, sayPhase, sayWaiting, sayWhere, toMinute } from './run/details.ts'

export interface RecoveryProgress extends WriteProgress<Snapshot> {
  limits: RecoveryLimits
  /** Reasons whose canary failed: the rest of them is not tried. */
  failedCanaries: readonly string[]
}

const buttons = [
  '**Send a Signal**: `pause` halts between two resumes, `unpause` resumes it; `stop`, like **Request Cancellation**, resumes nothing more, waits until it is seen what became of the last ones, and ends with a report. A second `stop` does not wait.',
  '**Send an Update**: `setLimits` changes rate, concurrency and bounds; `resolve` says what became of a parked subscription.',
  '**Terminate** ends it at once without a report; the next recovery first looks at what this one resumed.',
].join('\n\n')

const questions: Readonly<Record<WaitingFor, string>> = {
  approval: 'Nothing was resumed yet.',
  canary: 'The first ones were resumed.',
  breaker:
    'Too many resumes failed, and so did every trial after that. Approve to try the others all the same; stop to end it here.',
}

/** The Current Details of a recovery in the Temporal UI, as markdown: where it is, and what each button does. */
export function describeRecovery(progress: RecoveryProgress): string {
  const { identity, waitingFor, phase, summary } = progress
  const where = sayWhere(identity)
  if (phase === 'ended') return [...where, escapeMarkdown(summary ?? '')].join('\n\n')
  const what = 'recovery'
  const { nextAt } = progress
  const said =
    waitingFor === undefined
      ? [sayPhase({ what, phase, ...(nextAt !== undefined && { nextAt }) })]
      : sayWaiting({ ...waitingFor, what, why: questions[waitingFor.what] })
  const breaker =
    progress.breakerUntil === undefined
      ? []
      : [
          `The breaker is open: too many resumes of a reason failed, so it tries one at ${toMinute(progress.breakerUntil, 'seconds')} and resumes when that one lasts.`,
        ]
  const canaries = progress.failedCanaries.map(
    (reason) => `Of **${escapeMarkdown(reason)}** all that went first failed, so no other is tried.`,
  )
  return [
    ...where,
    ...said,
    ...breaker,
    ...canaries,
    ...previewOf(progress),
    ...sayPace({ pace: progress.pace, unit: 'resumes' }),
    ...sayCounts({ counts: progress.counts, unit: 'subscriptions' }),
    buttons,
  ].join('\n\n')
}

function previewOf({ staged: snapshot }: RecoveryProgress): string[] {
  if (snapshot === undefined) return []
  const { preview, candidates, proven, reasons } = snapshot
  const whole = proven
    ? 'the list was seen whole'
    : `the list was not seen whole: ${escapeMarkdown(reasons.join('; '))}`
  const { past, today, future, none } = preview.byNextBilling
  return [
    `${candidates} need attention; ${whole}.`,
    toTable('to resume, by reason', preview.byReason, preview.toResume),
    toTable('by collection_scheme (`charge_payment` charges at once)', preview.byScheme),
    toTable('by next_billing (what a resume without it bills is not documented)', {
      past,
      today,
      future,
      none,
    }),
    ...(Object.keys(preview.needsPerson).length === 0
      ? []
      : [toTable('for a person, by reason', preview.needsPerson)]),
    ...(Object.keys(preview.notResumed).length === 0 ? [] : [toTable('not resumed', preview.notResumed)]),
  ]
}

function toTable(title: string, counts: Readonly<Record<string, number>>, all?: number): string {
  const rows = Object.entries(counts).filter(([, count]) => count > 0)
  const last = all === undefined ? [] : [`| **all** | **${all}** |`]
  return [
    `| ${title} | |`,
    '| --- | ---: |',
    ...rows.map(([name, count]) => `| ${escapeMarkdown(name || 'no reason')} | ${count} |`),
    ...last,
  ].join('\n')
}
