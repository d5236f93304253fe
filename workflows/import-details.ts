import type { Staged } from '../activities/stage-import.ts'
import type { ImportLimits, ImportPlan } from '../imports/import-plan.ts'
import type { WaitingFor } from './desk.ts'
import type { SendingProgress } from './sending.ts'

export interface ImportProgress extends SendingProgress {
  phase:
    | 'checking'
    | 'staging'
    | 'waiting for approval'
    | 'canary'
    | 'sending'
    | 'paused'
    | 'stopping'
    | 'proving'
    | 'reporting'
    | 'ended'
  kind?: ImportPlan['kind']
  file?: string
  identity?: ImportPlan['identity']
  staged?: Staged
  limits: ImportLimits
  summary?: string
}

const buttons = [
  '**Signal `pause`** halts between two changes; **`unpause`** goes on.',
  '**Signal `stop`** or **Request Cancellation** ends the run cleanly, with a report; the same import goes on from there.',
  '**Update `setLimits`** changes rate, concurrency and bounds; **`resolve`** says what became of a parked row.',
  '**Terminate** ends it at once without a report; the ledger holds, and the same import goes on.',
].join('\n\n')

const questions: Readonly<Record<WaitingFor, string>> = {
  approval: 'Nothing was sent yet.',
  canary: 'The first rows were sent: look at results in the service, or with `connector report`.',
  breaker: 'Too many changes failed, so the breaker is open, and its trials failed too.',
}

/** The Current Details of an import in the Temporal UI, as markdown: where it is, and what each button does. */
export function describeImport(progress: ImportProgress): string {
  const { identity, waitingFor, phase, summary, kind, file } = progress
  const where =
    identity === undefined
      ? []
      : [
          `**${identity.mode.toUpperCase()}** ${identity.workspace} at ${identity.baseUrl}: ${kind} from \`${file}\``,
        ]
  if (phase === 'ended') return [...where, summary ?? ''].join('\n\n')
  const said =
    waitingFor === undefined
      ? [`The import is **${phase}**.`]
      : [
          `The import is **waiting for a person** until ${waitingFor.until}. ${questions[waitingFor.what]}`,
          `**Update \`approve\`** with \`{"by": "your name", "why": "..."${waitingFor.count === undefined ? '' : `, "count": ${waitingFor.count}`}}\` goes on; **\`stop\`** ends it.`,
        ]
  const breaker =
    progress.breakerUntil === undefined
      ? []
      : [`The breaker is open; it tries one change at ${progress.breakerUntil}.`]
  return [...where, ...said, ...breaker, ...totalsOf(progress), ...countsOf(progress), buttons].join('\n\n')
}

function totalsOf({ staged }: ImportProgress): string[] {
  if (staged === undefined) return []
  const { rows, changes, invalid, totals } = staged
  const names = Object.keys(totals.sums)
  const line = (name: string, count: number, sums: Readonly<Record<string, string>>) =>
    `| ${name} | ${count} | ${names.map((column) => sums[column] ?? '').join(' | ')} |`
  const groups = Object.entries(totals.by?.values ?? {}).map(([value, group]) =>
    line(`${totals.by?.field} ${value}`, group.changes, group.sums),
  )
  return [
    `${rows} rows, ${changes} changes, ${invalid} invalid.`,
    [
      `| | changes | ${names.join(' | ')} |`,
      `| --- | ---: | ${names.map(() => '---:').join(' | ')} |`,
      ...groups.slice(0, 20),
      line('all', changes, totals.sums),
    ].join('\n'),
  ]
}

function countsOf({ counts }: ImportProgress): string[] {
  if (counts === undefined) return []
  const names = Object.entries(counts).filter(([, count]) => count > 0)
  return [names.map(([name, count]) => `${name}: **${count}**`).join(', ')]
}
