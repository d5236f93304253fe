import type { ExportPlan } from '../core/exports/plan.ts'
import { sentence, strong } from '../core/runs/view/sentence.ts'
import type { View } from '../core/runs/view/view.ts'
import type { RunWorkers } from '../core/runs/workers.ts'
import { controls, phaseStatus, throughputStatus, workersStatus } from './run/status.ts'
import { type ShownTrouble, troublesStatus } from './run/troubles.ts'
import type { Throughput } from './run/throughput.ts'

export interface ExportProgress {
  name: 'export' | 'fetch'
  /** Set once the run is open. */
  run?: string
  phase: 'checking' | 'running' | 'paused' | 'stopping' | 'ended'
  identity?: ExportPlan['identity']
  resources: {
    resource: string
    state: 'reading' | 'publishing' | 'proven' | 'unproven' | 'stopped' | 'failed'
    records?: number
    reason?: string
  }[]
  /** What holds up its steps and those of the resources. */
  troubles?: ShownTrouble[]
  summary?: string
}

export interface ResourceProgress {
  phase: 'reading' | 'paused' | 'publishing' | 'stopped' | 'ended'
  resource: string
  records: number
  requests: number
  expected?: number
  /** The throughput of the last segment. */
  throughput?: Throughput | undefined
  /** The workers of the last segment, where several may share the state. */
  workers?: RunWorkers | undefined
  troubles?: ShownTrouble[]
  verdict?: string
  reasons?: string[]
}

/** The view of an active export, for the Temporal UI. */
export function toLiveExport({ name, run, phase, identity, resources, troubles }: ExportProgress): View {
  return {
    title: name,
    run,
    identity,
    status: [
      phaseStatus({ name, phase }),
      ...troublesStatus(troubles),
      ...(resources.length === 0
        ? []
        : [sentence`Each resource is a run of its own under ${strong('Relationships')}, with its progress.`]),
    ],
    tables: [
      {
        title: '',
        head: ['resource', 'state', 'records', ''],
        rows: resources.map(({ resource, state, records = '', reason = '' }) => [
          resource,
          state,
          records,
          reason,
        ]),
      },
    ],
    controls: [
      ...controls({
        between: 'two requests',
        stop: 'ends the run cleanly.',
        terminate: sentence`${strong('Start Workflow Like This One')} resumes from what was read, also after a stop.`,
      }),
    ],
  }
}

/** The view of one resource's run, for the Temporal UI. */
export function toResourceView(progress: ResourceProgress): View {
  const {
    resource,
    phase,
    records,
    requests,
    expected,
    verdict,
    reasons = [],
    throughput,
    workers,
    troubles,
  } = progress
  const total = expected === undefined ? '' : ` of about ${expected}`
  const live = phase === 'reading' ? ' Live figures are in the heartbeat under Pending Activities.' : ''
  return {
    title: resource,
    status: [
      sentence`${resource}: ${strong(phase)}, ${records} records${total}, ${requests} requests.${live}`,
      ...troublesStatus(troubles),
      ...(verdict === undefined ? [] : [sentence`Verdict: ${strong(verdict)}. ${reasons.join(' ')}`]),
      ...(phase === 'reading' ? [...throughputStatus(throughput, 'records'), ...workersStatus(workers)] : []),
    ],
  }
}
