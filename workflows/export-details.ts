import type { ExportPlan } from '../core/exports/plan.ts'
import { sayPace, sayPhase, sayWhere } from './run/details.ts'
import type { Pace } from './run/throughput.ts'
import { escapeMarkdown } from './run/markdown.ts'

export interface ExportProgress {
  what: 'export' | 'fetch'
  /** Known once it is open. */
  run?: string
  phase: 'checking' | 'running' | 'paused' | 'stopping' | 'ended'
  identity?: ExportPlan['identity']
  resources: {
    resource: string
    state: 'reading' | 'publishing' | 'proven' | 'unproven' | 'stopped' | 'failed'
    records?: number
    says?: string
  }[]
  summary?: string
}

export interface ResourceProgress {
  phase: 'reading' | 'paused' | 'publishing' | 'stopped' | 'ended'
  resource: string
  records: number
  requests: number
  expected?: number
  /** Of the last segment. */
  pace?: Pace | undefined
  verdict?: string
  reasons?: string[]
}

const buttons = [
  '**Send a Signal**: `pause` halts between two requests, `unpause` goes on; `stop`, like **Request Cancellation**, ends the run cleanly.',
  '**Terminate** ends it at once without a report. **Start Workflow Like This One** goes on from what was read, after a stop too.',
].join('\n\n')

/** The Current Details of an export in the Temporal UI, as markdown: where it is, and what each button does. */
export function describeExport(progress: ExportProgress): string {
  const rows = progress.resources.map(
    (row) =>
      `| ${escapeMarkdown(row.resource)} | \u00a0\u00a0${row.state} | \u00a0\u00a0${row.records ?? ''} | \u00a0\u00a0${escapeMarkdown(row.says ?? '')} |`,
  )
  const table =
    rows.length === 0
      ? []
      : [
          '| resource | \u00a0\u00a0state | \u00a0\u00a0records | |\n| --- | --- | ---: | --- |\n' +
            rows.join('\n'),
        ]
  const children =
    rows.length === 0
      ? []
      : ['Each is a run of its own under **Relationships**: how far it is, and how fast.']
  const { what, phase, summary = '' } = progress
  const said =
    phase === 'ended'
      ? [escapeMarkdown(summary), ...table]
      : [sayPhase({ what, phase }), ...table, ...children, buttons]
  return [...sayWhere(progress.identity), ...said].join('\n\n')
}

/** The Current Details of one resource's child run. */
export function describeResource(progress: ResourceProgress): string {
  const of = progress.expected === undefined ? '' : ` of about ${progress.expected}`
  const verdict =
    progress.verdict === undefined
      ? ''
      : `\n\nVerdict: **${progress.verdict}**. ${escapeMarkdown(progress.reasons?.join(' ') ?? '')}`
  const live =
    progress.phase === 'reading' ? ' Live figures are in the heartbeat under Pending Activities.' : ''
  const pace = progress.phase === 'reading' ? sayPace({ pace: progress.pace, unit: 'records' }) : []
  return [
    `${progress.resource}: **${progress.phase}**, ${progress.records} records${of}, ${progress.requests} requests.${live}${verdict}`,
    ...pace,
  ].join('\n\n')
}
