import type { RangesProgress } from '../core/exports/parts/ranges.ts'
import type { ExportPlan } from '../core/exports/plan.ts'
import { formatCount } from '../core/runs/view/format.ts'
import { sentence, strong, type View } from '../core/runs/view/view.ts'
import { controls, phaseStatus, throughputStatus } from './run/status.ts'
import type { Throughput } from './run/throughput.ts'
import { type ShownTrouble, troublesStatus } from './run/troubles.ts'

/** The progress of one list, and how it ended. */
export interface ListProgress {
  resource: string
  state: 'reading' | 'publishing' | 'proven' | 'unproven' | 'stopped' | 'failed'
  records?: number
  requests?: number
  /** The ranges that are being read, with what `records` and `requests` already count of them. */
  reading?: RangesProgress['left']
  /** About how many records there are. */
  expected?: number
  /** The throughput of the last segment. */
  throughput?: Throughput | undefined
  reason?: string
}

export interface ExportProgress {
  name: 'export' | 'fetch' | 'publication'
  /** Set once the run is open. */
  run?: string
  phase: 'checking' | 'running' | 'paused' | 'stopping' | 'ended'
  identity?: ExportPlan['identity']
  to?: ExportPlan['to']
  resources: ListProgress[]
  /** What holds up its steps. */
  troubles?: ShownTrouble[]
  summary?: string
}

const titles = { export: 'Export', fetch: 'Fetch', publication: 'Publication' } as const

/** The view of an active run, for the Temporal UI. */
export function toLiveExport(progress: ExportProgress): View {
  const { name, run, phase, identity, to, resources, troubles } = progress
  const reading = resources.filter(({ state }) => state === 'reading')
  const isAgain = name === 'publication'
  return {
    title:
      to === undefined
        ? titles[name]
        : `${titles[name]} of ${resources.map(({ resource }) => resource).join(', ')} to ${to.join(', ')}`,
    run,
    identity,
    status: [
      phaseStatus({ name, phase }),
      ...troublesStatus(troubles),
      ...(isAgain ? [sentence`It publishes retained parts and does not call the service.`] : []),
      ...(reading.length > 0 && phase === 'running'
        ? [
            ...reading.flatMap(({ resource, throughput }) => throughputStatus(throughput, resource)),
            sentence`Live figures are in the heartbeats under Pending Activities.`,
          ]
        : []),
    ],
    tables: [
      {
        title: '',
        head: ['resource', 'state', 'records', 'requests', ''],
        rows: resources.map(({ resource, state, records = '', expected, requests = '', reason = '' }) => [
          resource,
          state,
          typeof records === 'number' && state === 'reading' && expected !== undefined
            ? `${formatCount(records)} of about ${formatCount(expected)}`
            : records,
          requests,
          reason,
        ]),
      },
    ],
    controls: controls({
      between: isAgain ? 'two publications' : 'two requests',
      stop: 'ends the run cleanly.',
      terminate: isAgain
        ? sentence`${strong('Start Workflow Like This One')} publishes what is not published yet.`
        : sentence`${strong('Start Workflow Like This One')} reads the lists again.`,
    }),
  }
}
