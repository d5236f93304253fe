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

/** Records every request and effect of the sandbox, in order. */
export class Audit {
  readonly #keep: NonNullable<SandboxOptions['audit']>
  readonly #requests: RequestEntry[] = []
  readonly #effects: EffectEntry[] = []
  #received = 0

  constructor(keep: NonNullable<SandboxOptions['audit']>) {
    this.#keep = keep
  }

  receive(method: string, url: string): RequestEntry {
    const entry: RequestEntry = { request: ++this.#received, receivedAt: now(), method, url }
    if (this.#keep === 'all' || (this.#keep === 'writes' && method !== 'GET')) this.#requests.push(entry)
    return entry
  }

  answer(entry: RequestEntry, status: number): void {
    entry.status = status
    entry.answeredAt = now()
  }

  /** Returns the effect's sequence number. */
  effect(mode: Mode, resource: ResourceName, change: Change): number {
    const { cause, kind } = change
    const sequence = this.#effects.length + 1
    this.#effects.push({
      sequence,
      at: now(),
      effect: cause.effect ?? kind,
      resource: cause.part?.resource ?? resource,
      mode,
      id: cause.part?.id ?? (change.after ?? change.before)?.id ?? '',
      by: cause.by,
      ...(cause.request === undefined ? {} : { request: cause.request }),
    })
    return sequence
  }

  /** The number of the last effect. */
  get mark(): number {
    return this.#effects.length
  }

  get received(): number {
    return this.#received
  }

  requests(after = 0): RequestEntry[] {
    return this.#requests.filter((entry) => entry.request > after)
  }

  effects(after = 0): EffectEntry[] {
    return this.#effects.slice(after)
  }

  /** The most requests received in any one second. */
  busiestSecond(after = 0): number {
    const times = this.requests(after).map((entry) => entry.receivedAt)
    let most = 0
    let first = 0
    for (const [last, time] of times.entries()) {
      while ((times[first] as number) <= time - 1000) first++
      most = Math.max(most, last - first + 1)
    }
    return most
  }
}
