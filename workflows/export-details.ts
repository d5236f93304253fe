import type { ExportPlan } from '../activities/export-plan.ts'

export interface ExportProgress {
  what: 'export' | 'fetch'
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
  verdict?: string
  reasons?: string[]
}

const buttons = [
  '**Signal `pause`** halts between two requests; **`unpause`** goes on.',
  '**Signal `stop`** or **Request Cancellation** ends the run cleanly; what was read is kept for the next run.',
  '**Terminate** ends it at once without a report; the next run of the same input goes on from what was read.',
].join('\n\n')

/** The Current Details of an export in the Temporal UI, as markdown: where it is, and what each button does. */
export function describeExport(progress: ExportProgress): string {
  const { identity } = progress
  const where =
    identity === undefined
      ? ''
      : `**${identity.mode.toUpperCase()}** ${identity.workspace} at ${identity.baseUrl}\n\n`
  const rows = progress.resources.map(
    (row) => `| ${row.resource} | ${row.state} | ${row.records ?? ''} | ${row.says ?? ''} |`,
  )
  const table =
    rows.length === 0
      ? ''
      : `| resource | state | records | |\n| --- | --- | ---: | --- |\n${rows.join('\n')}\n\n`
  if (progress.phase === 'ended') return `${where}${progress.summary ?? ''}\n\n${table}`
  return `${where}The ${progress.what} is **${progress.phase}**.\n\n${table}${buttons}`
}

/** The Current Details of one resource's child run. */
export function describeResource(progress: ResourceProgress): string {
  const of = progress.expected === undefined ? '' : ` of about ${progress.expected}`
  const verdict =
    progress.verdict === undefined
      ? ''
      : `\n\nVerdict: **${progress.verdict}**. ${progress.reasons?.join(' ') ?? ''}`
  const live =
    progress.phase === 'reading' ? ' Live figures are in the heartbeat under Pending Activities.' : ''
  return `${progress.resource}: **${progress.phase}**, ${progress.records} records${of}, ${progress.requests} requests.${live}${verdict}`
}
