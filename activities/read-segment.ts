import { cancellationSignal, heartbeat } from '@temporalio/activity'
import { openSegment } from './export-segment.ts'
import { latestCheckpoint, type Checkpoint } from './checkpoint.ts'
import type { ClaimOwner } from '../state/claims.ts'
import { claim, claimsOf, isClosedTo } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import type { ExportPlan } from './export-plan.ts'
import { openRunFolder } from './run-folder.ts'
import type { RunRates } from './run-rates.ts'

/** Temporal is told this often; it passes on one in four seconds, which is also how soon a stop is heard. */
const heartbeatMs = 1_000

export interface SegmentInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  /** How long to read before the workflow is told how far it got. */
  seconds: number
  /** The run itself, not the part of it that reads one list. */
  owner: ClaimOwner
}

/** Where a segment ended: counts and names only, so that no row ever enters a workflow's history. */
export interface SegmentResult {
  /** The checkpoint to publish, or to go on from. */
  checkpoint: string
  records: number
  requests: number
  /** The service's own count, a hint. */
  expected?: number
  /** Set when the read is whole. */
  verdict?: 'proven' | 'unproven'
}

/**
 * Reads on from the last checkpoint of the run for some time, or to the end of the list. A retry, a pause and a
 * new run after a failed one all go on the same way.
 */
export function createReadSegment({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  const inProgress = new Map<string, Promise<unknown>>()
  return async function readSegment(input: SegmentInput): Promise<SegmentResult> {
    const { plan, resource, seconds, owner } = input
    for (const what of claimsOf({ resources: [resource], to: plan.to })) await claim({ deps, what, owner })
    const folder = await openRunFolder({ ...deps, plan, resource, isClosed: isClosedTo(owner) })
    // Temporal may have given up on an attempt that this process still has: its request budget is this one's now.
    const before = inProgress.get(folder)
    const read = async () => {
      let segment: ReturnType<typeof openSegment> | undefined
      const beat = setInterval(() => heartbeat(segment?.progress() ?? { resource }), heartbeatMs)
      try {
        await before?.catch(() => undefined)
        const from = await latestCheckpoint(folder)
        if (from?.outcome !== undefined) return from
        const cancelled = cancellationSignal()
        cancelled.throwIfAborted()
        segment = openSegment({ deps, plan, resource, folder, from, billing: rates.of(plan), cancelled })
        return await segment.readFor(seconds * 1000)
      } finally {
        clearInterval(beat)
        await segment?.close()
        if (inProgress.get(folder) === reading) inProgress.delete(folder)
      }
    }
    const reading: Promise<Checkpoint> = read()
    inProgress.set(folder, reading)
    const result = toResult(await reading)
    const { requests: page, records, verdict } = result
    deps.observer.did({ did: 'read', run: plan.run, resource, page, records, ...(verdict && { verdict }) })
    return result
  }
}

function toResult({ name, outcome, read }: Checkpoint): SegmentResult {
  const { counts, requests, countBefore } = read
  return {
    checkpoint: name,
    records: counts.records,
    requests: requests.made,
    ...(countBefore === undefined ? {} : { expected: countBefore }),
    ...(outcome === undefined ? {} : { verdict: outcome.verdict }),
  }
}
