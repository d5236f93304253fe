import type { ReadOptions } from './options.ts'
import type { PassState, ReadState } from './state.ts'

export const newPass: PassState = { phase: 'chain', page: 1, windows: 0, idle: 0 }

/** A whole list with statuses may hide some records unless their status is requested. */
export function statusesToWatch({
  resource,
  filters,
  updatedSince,
  maxRequests,
}: ReadOptions): readonly string[] {
  const whole = filters?.['status'] === undefined && updatedSince === undefined && maxRequests === undefined
  return whole ? (resource.statuses ?? []) : []
}

/** The state of a read of the whole list before its first request. */
export function startState(options: ReadOptions): ReadState {
  const startedAt = options.now()
  const { serviceTime, readLagMs, newestUpdated } = options
  return {
    clock: serviceTime === undefined ? 'local' : 'service',
    startedAt,
    ...(serviceTime !== undefined && { servedAt: serviceTime }),
    ...(newestUpdated !== undefined && { newestUpdated }),
    completeThrough: ((serviceTime ?? startedAt) - readLagMs) * 1000,
    pass: newPass,
    statusesRead: -1,
    hiddenFound: false,
    requests: { made: 0, oddNext: 0 },
    counts: { windows: 0, linksRepaired: 0, records: 0, rejected: 0, duplicatesDropped: 0 },
    seen: { ignored: {}, testMode: false },
    undated: [],
    ties: [],
    reasons: [],
    capped: false,
  }
}
