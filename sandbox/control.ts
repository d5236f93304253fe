import { parseExactJson } from './exact-json.ts'
import type { Drift, ListManners, ListName, Mode, ResourceName } from './options.ts'
import type { DriftStep } from './drift.ts'
import type { EffectEntry, RequestEntry } from './audit.ts'
import type { Fault } from './faults.ts'
import { addFault, type Service, setFaults } from './service.ts'
import type { ChangeSource, Collection } from './store/collection.ts'
import type { Fields, RecordId } from './store/stored-record.ts'

/** Which record. */
export interface RecordName {
  resource: ResourceName
  id: RecordId
  mode?: Mode
}

/** Which records: all that are stored or, between two marks, those that were there throughout. */
export interface RecordSelection {
  resource: ResourceName
  mode?: Mode
  since?: number
  until?: number
}

/** What may be changed while the sandbox serves. */
export interface Adjustments {
  lists?: Partial<Record<ListName, Partial<ListManners>>>
  tieOrder?: 'shuffled' | 'stable'
  honoursTestMode?: boolean
  resumeActive?: 'refuse' | 'accept'
  dateHeader?: boolean
  /** The tokens that are valid from now on. */
  tokens?: readonly string[]
}

export interface Counters {
  /** All requests so far, the control's own not counted. */
  requests: number
  effects: number
  /** Most requests received in any one second. */
  busiestSecond: number
  /** Late effects and delays under way. */
  waiting: number
  records: Record<Mode, Partial<Record<ResourceName, number>>>
}

const cause: ChangeSource = { by: 'control' }

/**
 * The hand behind the stand-in: sets faults and drift, changes records as another client would, and tells the truth
 * about what is stored and what was done. Every method takes one object of JSON, and is the same over HTTP
 * (`POST /_sandbox/<method>`), so that a test does not care where the sandbox runs.
 */
export class Control {
  readonly #service: Service

  constructor(service: Service) {
    this.#service = service
  }

  setFaults(options: { faults: readonly Fault[] }): void {
    setFaults(this.#service, options.faults)
  }

  addFault(options: { fault: Fault }): void {
    addFault(this.#service, options.fault)
  }

  setDrift(options: { drift: Drift }): void {
    this.#service.drifter.set(options.drift)
  }

  freeze(): void {
    this.#service.drifter.freeze(true)
  }

  unfreeze(): void {
    this.#service.drifter.freeze(false)
  }

  /** Drifts now, by so much; returns the ids of what changed. */
  drift(step: DriftStep) {
    return this.#service.drifter.step(step)
  }

  adjust(options: Adjustments): void {
    const { tokens, lists, ...settings } = options
    Object.assign(this.#service.settings, settings)
    for (const [name, manners] of Object.entries(lists ?? {}))
      Object.assign(this.#service.settings.lists[name as ListName], manners)
    if (tokens === undefined) return
    this.#service.tokens.clear()
    for (const token of tokens) this.#service.tokens.add(token)
  }

  /**
   * A new record: generated, or, with `fields`, of exactly these and id, `created` and `updated`. `created` is where
   * the list sorts it, microseconds since 1970 (now, if left out).
   */
  insert(options: { resource: ResourceName; mode?: Mode; fields?: Fields; created?: number }): RecordId {
    const { fields, created } = options
    const given = {
      ...(fields === undefined ? {} : { fields }),
      ...(created === undefined ? {} : { created }),
    }
    return this.#collection(options).create({ cause, ...given }).id
  }

  /** Changes fields; `updated` moves unless `touch` is false. False where there is no such record. */
  update(options: RecordName & { fields: Fields; touch?: boolean }): boolean {
    const { id, fields, touch = true } = options
    return this.#collection(options).update({ id, fields, cause, touch }) !== undefined
  }

  delete(options: RecordName): boolean {
    return this.#collection(options).remove(options.id, cause) !== undefined
  }

  /** Brings a deleted record back to where it was. */
  restore(options: RecordName): boolean {
    return this.#collection(options).restore(options.id, cause) !== undefined
  }

  /** A record as the service would answer it now, numbers exact as JSON.rawJSON. */
  get(options: RecordName): Fields | undefined {
    const collection = this.#collection(options)
    const record = collection.get(options.id)
    return record && (parseExactJson(collection.source.json(record).toString()) as Fields)
  }

  /** A moment: a number to give as `since`, `until` or `after`. */
  mark(): number {
    return this.#service.audit.mark
  }

  /** The ids in the order of `created`. */
  ids(options: RecordSelection): RecordId[] {
    return [...this.#select(options)].map(({ id }) => id)
  }

  /** The JSON of each record, in the order of `created`: the truth to hold an export against. */
  *records(options: RecordSelection): Generator<string> {
    const { source } = this.#collection(options)
    for (const record of this.#select(options)) yield source.json(record).toString()
  }

  /** The requests that came after the one with this number. */
  requests(options: { after?: number } = {}): RequestEntry[] {
    return this.#service.audit.requests(options.after)
  }

  /** The effects since a mark. */
  effects(options: { after?: number } = {}): EffectEntry[] {
    return this.#service.audit.effects(options.after)
  }

  /** Lets late effects land, and delays end, now. */
  landLateEffects(): void {
    this.#service.later.landAll()
  }

  counters(): Counters {
    const { audit, later, worlds } = this.#service
    const sizes = (mode: Mode) =>
      Object.fromEntries(Object.entries(worlds[mode]).map(([name, { view }]) => [name, view.size]))
    return {
      requests: audit.received,
      effects: audit.mark,
      busiestSecond: audit.busiestSecond(),
      waiting: later.waiting,
      records: { live: sizes('live'), test: sizes('test') },
    }
  }

  #collection(options: { resource: ResourceName; mode?: Mode }): Collection {
    const collection = this.#service.worlds[options.mode ?? 'live'][options.resource]
    if (collection === undefined) throw new RangeError(`no such resource: ${options.resource}`)
    return collection
  }

  #select({ resource, mode, since, until }: RecordSelection) {
    const collection = this.#collection({ resource, ...(mode === undefined ? {} : { mode }) })
    const from = since ?? Infinity
    return collection.throughout({ since: from, ...(until === undefined ? {} : { until }) })
  }
}
