import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EffectEntry, RequestEntry } from './audit.ts'
import type { DriftStep } from './drift.ts'
import { parseExactJson } from './exact-json.ts'
import type { Fault } from './faults.ts'
import type { Drift, ListManners, ListName, Mode, ResourceName } from './options.ts'
import { addFault, type Service, setFaults } from './service.ts'
import type { ChangeSource, Collection, Fields, RecordId } from './store.ts'

/** Identifies a record. */
export interface RecordName {
  resource: ResourceName
  id: RecordId
  mode?: Mode
}

/** Selects records: all that are stored or, between two marks, those that existed throughout. */
export interface RecordSelection {
  resource: ResourceName
  mode?: Mode
  since?: number
  until?: number
}

/** Settings that can change while the sandbox serves. */
export interface Adjustments {
  lists?: Partial<Record<ListName, Partial<ListManners>>>
  tieOrder?: 'shuffled' | 'stable'
  honoursTestMode?: boolean
  resumeActive?: 'refuse' | 'accept'
  dateHeader?: boolean
  /** The valid tokens from now on. */
  tokens?: readonly string[]
}

export interface Counters {
  /** All requests so far, excluding those to the control. */
  requests: number
  effects: number
  /** The most requests received in any one second. */
  busiestSecond: number
  /** Pending late effects and delays. */
  waiting: number
  records: Record<Mode, Partial<Record<ResourceName, number>>>
}

const cause: ChangeSource = { by: 'control' }

/**
 * Controls the stand-in service: sets faults and drift, changes records as another client would, and reports
 * what is really stored and was really done. Every method takes one JSON object and works the same over HTTP
 * (`POST /_sandbox/<method>`), so that tests do not depend on where the sandbox runs.
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

  /** Drifts now by the given amounts; returns the ids of the changed records. */
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
   * Inserts a record: generated or, with `fields`, with exactly these plus id, `created` and `updated`.
   * `created` is its position in the list, in microseconds since 1970 (default: now).
   */
  insert(options: { resource: ResourceName; mode?: Mode; fields?: Fields; created?: number }): RecordId {
    const { fields, created } = options
    const given = {
      ...(fields === undefined ? {} : { fields }),
      ...(created === undefined ? {} : { created }),
    }
    return this.#collection(options).create({ cause, ...given }).id
  }

  /**
   * Changes fields; `updated` advances unless `touch` is false. Returns false if there is no such record.
   */
  update(options: RecordName & { fields: Fields; touch?: boolean }): boolean {
    const { id, fields, touch = true } = options
    return this.#collection(options).update({ id, fields, cause, touch }) !== undefined
  }

  delete(options: RecordName): boolean {
    return this.#collection(options).remove(options.id, cause) !== undefined
  }

  /** Restores a deleted record to its old position. */
  restore(options: RecordName): boolean {
    return this.#collection(options).restore(options.id, cause) !== undefined
  }

  /** A record as the service would return it now, with exact numbers as JSON.rawJSON. */
  get(options: RecordName): Fields | undefined {
    const collection = this.#collection(options)
    const record = collection.get(options.id)
    return record && (parseExactJson(collection.json(record).toString()) as Fields)
  }

  /** The current mark, to pass as `since`, `until` or `after`. */
  mark(): number {
    return this.#service.audit.mark
  }

  /** The ids in the order of `created`. */
  ids(options: RecordSelection): RecordId[] {
    return [...this.#select(options)].map(({ id }) => id)
  }

  /** The JSON of each record, in the order of `created`: the reference to compare an export with. */
  *records(options: RecordSelection): Generator<string> {
    const collection = this.#collection(options)
    for (const record of this.#select(options)) yield collection.json(record).toString()
  }

  /** The requests received after the one with this number. */
  requests(options: { after?: number } = {}): RequestEntry[] {
    return this.#service.audit.requests(options.after)
  }

  /** The effects since a mark. */
  effects(options: { after?: number } = {}): EffectEntry[] {
    return this.#service.audit.effects(options.after)
  }

  /** Applies late effects, and ends delays, now. */
  landLateEffects(): void {
    this.#service.later.landAll()
  }

  counters(): Counters {
    const { audit, later, worlds } = this.#service
    const sizes = (mode: Mode) =>
      Object.fromEntries(
        Object.entries(worlds[mode]).map(([name, { view }]) => [name, view.ordered('created').length]),
      )
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

const methods = [
  'setFaults',
  'addFault',
  'setDrift',
  'freeze',
  'unfreeze',
  'drift',
  'adjust',
  'insert',
  'update',
  'delete',
  'restore',
  'get',
  'mark',
  'ids',
  'landLateEffects',
  'counters',
] as const satisfies readonly (keyof Control)[]

/** Methods that return JSON lines of any number. */
const streams: Readonly<Record<string, (control: Control, options: never) => Iterable<string>>> = {
  records: (control, options: RecordSelection) => control.records(options),
  requests: (control, options: { after?: number }) => lines(control.requests(options)),
  effects: (control, options: { after?: number }) => lines(control.effects(options)),
}

function* lines(values: readonly unknown[]) {
  for (const value of values) yield JSON.stringify(value)
}

/**
 * Calls a control method: `POST /_sandbox/<method>` takes its argument as the body and returns its result as
 * JSON, or JSON lines.
 */
export async function answerControl(options: {
  control: Control
  request: IncomingMessage
  response: ServerResponse
  url: string
}): Promise<void> {
  const { control, request, response } = options
  const name = options.url.slice('/_sandbox/'.length)
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  try {
    const argument = parseExactJson(Buffer.concat(chunks).toString() || '{}')
    const stream = Object.hasOwn(streams, name) ? streams[name] : undefined
    if (stream !== undefined) return await answerLines(response, stream(control, argument as never))
    const method = methods.find((known) => known === name)
    if (method === undefined || request.method !== 'POST')
      return answer(response, 404, { error: `no such call: ${name}` })
    const call = control[method] as (argument: unknown) => unknown
    answer(response, 200, call.call(control, argument) ?? null)
  } catch (error) {
    answer(response, 400, { error: error instanceof Error ? error.message : String(error) })
  }
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

async function answerLines(response: ServerResponse, values: Iterable<string>): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  for (const value of values) {
    if (!response.write(`${value}\n`) && !response.destroyed) await once(response, 'drain')
    if (response.destroyed) return
  }
  response.end()
}
