import { Chance } from './data/random.ts'
import type { Fault, FaultKind, FaultOf } from './faults.ts'

/** The facts about a request that a plan needs. */
export interface FaultSubject {
  /** `GET /customers/`, `PATCH /contacts/{id}/`. */
  operation: string
  id: string | undefined
  body: unknown
}

interface Armed {
  fault: Fault
  seen: number
  setAt: number
  chance: Chance
}

/** The faults that apply to one request. */
export class Struck {
  readonly #faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    this.#faults = faults
  }

  get kinds(): string[] {
    return this.#faults.map((fault) => fault.kind)
  }

  /** The first fault of this kind. */
  find<K extends FaultKind['kind']>(kind: K): FaultOf<K> | undefined {
    return this.#faults.find((fault) => fault.kind === kind) as FaultOf<K> | undefined
  }

  all<K extends FaultKind['kind']>(kind: K): FaultOf<K>[] {
    return this.#faults.filter((fault) => fault.kind === kind) as FaultOf<K>[]
  }
}

const nothing = new Struck([])

/** Decides which faults apply to a request; each fault has its own counter and random draws. */
export class FaultPlan {
  readonly #seed: number
  readonly #nowMs: () => number
  #armed: Armed[] = []
  #set = 0

  constructor(options: { seed: number; nowMs: () => number }) {
    this.#seed = options.seed
    this.#nowMs = options.nowMs
  }

  replace(faults: readonly Fault[]): void {
    this.#armed = []
    for (const fault of faults) this.add(fault)
  }

  add(fault: Fault): void {
    const chance = new Chance(this.#seed, 5_000_000_029 + this.#set++)
    this.#armed.push({ fault, seen: 0, setAt: this.#nowMs(), chance })
  }

  current(): Fault[] {
    return this.#armed.map(({ fault }) => fault)
  }

  strike(subject: FaultSubject): Struck {
    if (this.#armed.length === 0) return nothing
    return new Struck(this.#armed.filter((armed) => this.#strikes(armed, subject)).map(({ fault }) => fault))
  }

  #strikes(armed: Armed, subject: FaultSubject): boolean {
    const { fault } = armed
    if (!selects(fault, subject)) return false
    armed.seen++
    if (fault.requests !== undefined && !fault.requests.includes(armed.seen)) return false
    if (armed.seen < (fault.from ?? 1) || armed.seen > (fault.to ?? Infinity)) return false
    const age = (this.#nowMs() - armed.setAt) / 1000
    if (age > (fault.forSeconds ?? Infinity)) return false
    return armed.chance.happens(fault.rate ?? 1)
  }
}

function selects(fault: Fault, subject: FaultSubject): boolean {
  const { on, ids, body } = fault
  if (
    on !== undefined &&
    !(typeof on === 'string' ? on === subject.operation : on.includes(subject.operation))
  )
    return false
  if (ids !== undefined && (subject.id === undefined || !ids.includes(subject.id))) return false
  if (body === undefined) return true
  const sent = subject.body
  if (typeof sent !== 'object' || sent === null) return false
  return Object.entries(body).every(
    ([field, value]) => JSON.stringify((sent as Record<string, unknown>)[field]) === JSON.stringify(value),
  )
}
