import type { DriftStep } from './drift.ts'
import type { Fault } from './faults.ts'
import type { Drift, ListManners, ListName, Mode, ResourceName } from './options.ts'
import { parseExactJson } from './data/values.ts'
import type { Service } from './service.ts'
import type { ChangeSource, Collection, Fields, RecordId } from './store.ts'

interface ResourceOf {
  resource: ResourceName
  mode?: Mode
}

/** Identifies a record. */
type RecordName = ResourceOf & { id: RecordId }

/** Selects records: all that are stored or, between two marks, those that existed throughout. */
type RecordSelection = ResourceOf & { since?: number; until?: number }

/** Settings that can change while the sandbox serves. */
interface Adjustments {
  lists?: Partial<Record<ListName, Partial<ListManners>>>
  tieOrder?: 'shuffled' | 'stable'
  honoursTestMode?: boolean
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

export type Control = ReturnType<typeof createControl>

/**
 * Controls the stand-in service: sets faults and drift, changes records as another client would, and reports
 * what is really stored and was really done. Every method takes one JSON object and works the same over HTTP
 * (`POST /_sandbox/<method>`), so that tests do not depend on where the sandbox runs.
 */
export function createControl({ settings, tokens, worlds, audit, faults, drifter, later }: Service) {
  function collectionOf({ resource, mode = 'live' }: ResourceOf): Collection {
    const collection = worlds[mode][resource]
    if (collection === undefined) throw new RangeError(`no such resource: ${resource}`)
    return collection
  }
  const select = ({ since = Infinity, until = Infinity, ...of }: RecordSelection) =>
    collectionOf(of).throughout({ since, until })
  const sizesIn = (mode: Mode) =>
    Object.fromEntries(Object.entries(worlds[mode]).map(([name, { ordered }]) => [name, ordered().length]))

  return {
    setFaults: (options: { faults: readonly Fault[] }) => faults.replace(options.faults),
    addFault: ({ fault }: { fault: Fault }) => faults.add(fault),
    setDrift: ({ drift }: { drift: Drift }) => drifter.set(drift),
    /** Drifts now by the given amounts; returns the ids of the changed records. */
    drift: (step: DriftStep) => drifter.step(step),

    adjust({ tokens: valid, lists = {}, ...changed }: Adjustments): void {
      Object.assign(settings, changed)
      for (const [name, manners] of Object.entries(lists))
        Object.assign(settings.lists[name as ListName], manners)
      if (valid === undefined) return
      tokens.clear()
      for (const token of valid) tokens.add(token)
    },

    /**
     * Inserts a record: generated or, with `fields`, with exactly these plus id, `created` and `updated`.
     * `created` is its position in the list, in microseconds since 1970 (default: now).
     */
    insert: ({ resource, mode, ...record }: ResourceOf & { fields?: Fields; created?: number }): RecordId =>
      collectionOf({ resource, ...(mode && { mode }) }).create({ cause, ...record }).id,

    /**
     * Changes fields; `updated` advances unless `touch` is false. Returns false if there is no such record.
     */
    update: ({
      id,
      fields,
      touch = true,
      ...of
    }: RecordName & { fields: Fields; touch?: boolean }): boolean =>
      collectionOf(of).update({ id, fields, cause, touch }) !== undefined,
    delete: ({ id, ...of }: RecordName): boolean => collectionOf(of).remove(id, cause) !== undefined,
    /** Restores a deleted record to its old position. */
    restore: ({ id, ...of }: RecordName): boolean => collectionOf(of).restore(id, cause) !== undefined,

    /** A record as the service would return it now, with exact numbers as JSON.rawJSON. */
    get({ id, ...of }: RecordName): Fields | undefined {
      const collection = collectionOf(of)
      const record = collection.get(id)
      return record && (parseExactJson(collection.json(record).toString()) as Fields)
    },

    /** The current mark, to pass as `since`, `until` or `after`. */
    mark: (): number => audit.mark(),
    /** The ids in the order of `created`. */
    ids: (of: RecordSelection): RecordId[] => [...select(of)].map(({ id }) => id),
    /** The JSON of each record, in the order of `created`: the reference to compare an export with. */
    *records(of: RecordSelection): Generator<string> {
      const { json } = collectionOf(of)
      for (const record of select(of)) yield json(record).toString()
    },
    /** The requests received after the one with this number. */
    requests: ({ after }: { after?: number } = {}) => audit.requests(after),
    /** The effects since a mark. */
    effects: ({ after }: { after?: number } = {}) => audit.effects(after),
    /** Applies late effects, and ends delays, now. */
    landLateEffects: () => later.landAll(),

    counters: (): Counters => ({
      requests: audit.received(),
      effects: audit.mark(),
      busiestSecond: audit.busiestSecond(),
      waiting: later.waiting(),
      records: { live: sizesIn('live'), test: sizesIn('test') },
    }),
  }
}
