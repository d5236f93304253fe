import { Refused } from '../billing/errors.ts'
import { fetchFresh } from './fetch-window.ts'
import { usualSizes } from './find-window.ts'
import { type Instant, toInstant } from '../billing/instants.ts'
import { isInOrder } from './order.ts'
import { statusesOf } from '../billing/resources/filters.ts'
import type { Identity, StatusCheck } from './range-state.ts'
import type { Reading } from './reading.ts'
import { idOf, isRecord } from './record.ts'

/**
 * The orders in which each status is sampled: its oldest records (a service may archive those), its newest, and those
 * that changed last. If one page shows all records of the status, it is enough. That may be the claim of an old count, at
 * which the list is cut; whether a status has any record from before the read, its oldest one tells all the same.
 */
const ends = ['created', '-created', '-updated'] as const
type End = (typeof ends)[number]

/**
 * Finds records that the list shows only if their status is requested. The ends of each status are sampled before the
 * read; an id that the read never sees but the status still shows after it is hidden.
 */
export async function watchStatuses(reading: Reading): Promise<void> {
  const watched: Record<string, string> = {}
  const unmet = new Set<string>()
  for await (const { records, servedAt, unseen } of shownAtEnds(reading)) {
    // The first response with a Date tells the service's clock.
    if (reading.state.clock === 'local' && servedAt !== undefined)
      Object.assign(reading.state, {
        clock: 'service',
        servedAt,
        completeThrough: (servedAt - reading.state.lagMs) * 1000,
      })
    if (unseen !== undefined) unmet.add(unseen.status)
    for (const { id, status } of records) {
      unmet.add(status)
      if (id !== undefined) watched[id] = status
    }
  }
  reading.state.watched = watched
  reading.state.unmet = [...unmet]
}

/**
 * Whether a sampled id that the read did not see still shows under a status after the read, in two requests. Where it met
 * no record with a status, any that still has it may be hidden: the samples may be gone, or have another status by now.
 */
export async function findHidden(reading: Reading): Promise<boolean> {
  const { watched = {}, unmet = [], completeThrough } = reading.state
  let missing = Object.keys(watched)
  for (let time = 1; time <= 2 && (missing.length > 0 || (time === 1 && unmet.length > 0)); time++) {
    // A time that is unreadable does not show that a record is newer than the read.
    const shown = new Map<string, Instant>()
    for await (const { records, unseen } of shownAtEnds(reading)) {
      if (unseen !== undefined && unmet.includes(unseen.status))
        reading.addReason(
          `the list may hide records whose status is ${unseen.status}, and they cannot be asked for: ${unseen.why}`,
        )
      for (const { id, status, created = -Infinity } of records) {
        if (unmet.includes(status) && created <= completeThrough) return true
        if (id !== undefined) shown.set(id, created)
      }
    }
    missing = missing.filter((id) => (shown.get(id) ?? Infinity) <= completeThrough)
  }
  return missing.length > 0
}

/**
 * Whether a record may have changed to a hidden status during the read: fetches the last changes of each status again;
 * a record that changed since the read began must have been read.
 */
export async function checkStatuses(reading: Reading): Promise<StatusCheck> {
  const { completeThrough } = reading.state
  const changed: Identity[] = []
  let isOrdered = true
  let isSeen = true
  for (const status of statusesOf(reading.options.resource)) {
    const { records, isAll, isNewestFirst } = await shownAt(reading, status, '-updated')
    isOrdered &&= isAll || isNewestFirst
    isSeen &&= isAll || records.some(({ updated = Infinity }) => updated < completeThrough)
    for (const { id, created, updated = Infinity } of records)
      if (id !== undefined && (created ?? -Infinity) <= completeThrough && updated >= completeThrough)
        changed.push({ id, created })
  }
  if (await reading.lacksAny(changed)) return 'unread'
  if (!isOrdered) return 'unordered'
  return isSeen ? 'clear' : 'unseen'
}

/** `unseen`: a status of which the service does not show the oldest record, and why. */
async function* shownAtEnds(
  reading: Reading,
): AsyncGenerator<Shown & { unseen?: { status: string; why: string } }> {
  for (const status of statusesOf(reading.options.resource)) {
    for (const end of ends) {
      const shown = await shownAt(reading, status, end)
      const why =
        shown.refusal ?? (shown.records.some((one) => one.status !== status) ? isIgnored : undefined)
      yield { ...shown, ...(end === 'created' && why !== undefined && { unseen: { status, why } }) }
      if (shown.isAll) break
    }
  }
}
const isIgnored = 'the service ignores the filter'

interface Shown {
  /** `status`: their own, which is another one where the service ignores the filter. */
  records: {
    id: string | undefined
    status: string
    created: Instant | undefined
    updated: Instant | undefined
  }[]
  /** The page shows all records with the status. */
  isAll: boolean
  /** In the order of `-updated`. */
  isNewestFirst: boolean
  servedAt?: number | undefined
  /** Why there are none, if the service refuses the order or the status. */
  refusal?: string
}

/** The first page of one status in an order; empty if the service refuses it. */
async function shownAt(reading: Reading, status: string, ordering: End): Promise<Shown> {
  const filters = { ...reading.options.filters, status }
  try {
    const request = { filters, page: 1, pageSize: usualSizes.most, ordering }
    const { records, next, count = 0, servedAt } = await fetchFresh(reading, request)
    return {
      records: records.flatMap((record) => {
        if (!isRecord(record)) return []
        const [created, updated] = [toInstant(record['created']), toInstant(record['updated'])]
        const own = record['status']
        return [{ id: idOf(record), status: typeof own === 'string' ? own : status, created, updated }]
      }),
      isAll: next === null && count <= records.length,
      isNewestFirst: isInOrder(records.toReversed(), 'updated'),
      servedAt,
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return { records: [], isAll: false, isNewestFirst: false, refusal: error.message }
  }
}
