import type { Mode, ResourceName, SandboxOptions } from './options.ts'
import type { Change, RecordId } from './store.ts'

/** One request as received, and its response. */
export interface RequestEntry {
  request: number
  /** When the head was received: milliseconds since 1970 with a fraction, by a monotonic clock. */
  receivedAt: number
  method: string
  url: string
  /** The body of a write, as received. */
  body?: string
  /** The faults applied to it. */
  faults?: string[]
  /** Absent until answered, or if the connection was reset instead. */
  status?: number
  answeredAt?: number
}

/** One change of a record, by a client, a fault or drift. */
export interface EffectEntry {
  /** Numbers all effects from 1; marks are such numbers. */
  sequence: number
  at: number
  /** `create`, `update`, `delete`, `restore`, or `resume`, whatever the outcome of the resume. */
  effect: string
  resource: ResourceName | 'contacts'
  mode: Mode
  id: RecordId
  by: Change['cause']['by']
  /** The request that caused it. */
  request?: number
}

const now = () => performance.timeOrigin + performance.now()

export type Audit = ReturnType<typeof createAudit>

/** Records every request and effect of the sandbox, in order. */
export function createAudit(keep: NonNullable<SandboxOptions['audit']>) {
  const requests: RequestEntry[] = []
  const effects: EffectEntry[] = []
  let received = 0
  return {
    receive(method: string, url: string): RequestEntry {
      const entry: RequestEntry = { request: ++received, receivedAt: now(), method, url }
      if (keep === 'all' || (keep === 'writes' && method !== 'GET')) requests.push(entry)
      return entry
    },

    answer(entry: RequestEntry, status: number): void {
      entry.status = status
      entry.answeredAt = now()
    },

    /** Returns the effect's sequence number. */
    effect(mode: Mode, resource: ResourceName, { cause, kind, record }: Change): number {
      return effects.push({
        sequence: effects.length + 1,
        at: now(),
        effect: cause.effect ?? kind,
        resource: cause.part?.resource ?? resource,
        mode,
        id: cause.part?.id ?? record.id,
        by: cause.by,
        ...(cause.request !== undefined && { request: cause.request }),
      })
    },

    /** The number of the last effect. */
    mark: () => effects.length,
    received: () => received,
    requests: (after = 0) => requests.filter(({ request }) => request > after),
    effects: (after = 0) => effects.slice(after),

    /** The most requests received in any one second. */
    busiestSecond(): number {
      let most = 0
      let first = 0
      for (const [last, { receivedAt }] of requests.entries()) {
        while (requests[first]!.receivedAt <= receivedAt - 1000) first++
        most = Math.max(most, last - first + 1)
      }
      return most
    },
  }
}
