import {
  broken,
  lookUpWindow,
  measure,
  type Decided,
  type TieExtent,
  type TieGroup,
  type WindowLookup,
} from './tie-extent.ts'
import { toTimestamp } from '../instant.ts'
import type { Pass } from '../pass.ts'
import type { Reading } from '../reading.ts'
import { identityOf } from '../record.ts'
import type { ReadStep } from '../state.ts'
import { newestOf, placeAbove, type Window } from '../chain/window.ts'

/** `swept`: the whole group was taken without a single window that holds all of it. */
export type GroupEnd = Decided | { kind: 'swept' }

const maxSweeps = 10
/** The ids of a group are kept while it is swept: about 5 MB at this many. */
const maxRecords = 50_000

/**
 * Takes a tie group that the window at the frontier does not hold completely.
 *
 * The order of ties may differ in each response, so two windows that hold one half each prove nothing. Its places are
 * swept, unless a window on the way turns out to hold the whole group and a record on either side.
 */
export async function* takeGroup(
  reading: Reading,
  pass: Pass,
  window: Window,
): AsyncGenerator<ReadStep, GroupEnd> {
  const at = pass.frontier.at
  const group: TieGroup = { at, descending: window.fromTop && window.descending && newestOf(window) === at }
  const guess = group.descending ? { first: 0, end: window.keys.length } : toGuess(pass, window)
  return yield* sweep(reading, pass, { group, guess })
}

function toGuess(pass: Pass, window: Window): Partial<TieExtent> {
  const end = window.descending ? pass.place : placeAbove(window, pass.frontier.at)
  return end === undefined ? {} : { end }
}

/**
 * Reads all places of the group repeatedly, until two successive sweeps show the same records, as many as there are
 * places before, between and after them: then no record can have escaped both. Each sweep uses another page size, so
 * that two replicas that differ by a record cannot hide one at the same border twice.
 */
async function* sweep(
  reading: Reading,
  pass: Pass,
  { group, guess }: { group: TieGroup; guess: Partial<TieExtent> },
): AsyncGenerator<ReadStep, GroupEnd> {
  const { made } = reading.requests
  let before = await measure(pass, group, guess)
  let agreed: Set<string> | undefined
  let shown = 0
  for (let sweeps = 1; sweeps <= maxSweeps; sweeps++) {
    if (before.kind !== 'extent') return before
    if (numberOf(before) > maxRecords)
      return broken(
        pass,
        group,
        `has ${numberOf(before)} records: no more than ${maxRecords} can be compared`,
      )
    const ids = new Set<string>()
    const size =
      pass.source.sizes.most - ((sweeps * 7) % (pass.source.sizes.most - pass.source.sizes.least + 1))
    for (let page = Math.floor(before.first / size) + 1; (page - 1) * size < before.end; page++) {
      const found = await lookUpWindow(pass, group, { page, pageSize: size })
      if (isDecided(found)) return found
      yield await pass.step(
        found.kind === 'window' ? takeTied(pass, { window: found.window, group, ids }) : undefined,
      )
    }
    const after: Decided | TieExtent = await measure(pass, group, before)
    if (after.kind !== 'extent') return after
    const complete = ids.size === numberOf(before) && ids.size === numberOf(after)
    if (complete && agreed !== undefined && isSame(ids, agreed)) {
      close({ reading, pass, group, sweeps, records: ids.size, made })
      // The group is complete, so a record of it now links.
      pass.place = group.descending ? Math.max(0, (pass.source.count ?? 0) - after.end) : after.first
      return { kind: 'swept' }
    }
    agreed = complete ? ids : undefined
    shown = ids.size
    before = after
  }
  const last =
    before.kind === 'extent' ? `, the last showed ${shown} records in ${numberOf(before)} places` : ''
  return broken(pass, group, `kept changing: ${maxSweeps} sweeps did not agree${last}`)
}

/** Takes the new records of the group in a window, and collects the ids of all of the group that it shows. */
function takeTied(pass: Pass, { window, group, ids }: { window: Window; group: TieGroup; ids: Set<string> }) {
  const key = window.descending ? -group.at : group.at
  for (const [at, record] of window.records.entries())
    if (window.keys[at] === key) ids.add(identityOf(record))
  return pass.takeFrom(window, group.at)
}

function close(options: {
  reading: Reading
  pass: Pass
  group: TieGroup
  sweeps: number
  records: number
  /** The requests of the read before the group. */
  made: number
}): void {
  const { reading, pass, group, sweeps, records, made } = options
  pass.frontier.closed = true
  const requests = reading.requests.made - made
  reading.swept({ at: toTimestamp(group.at), records, sweeps, requests })
}

function isDecided(found: WindowLookup): found is Decided {
  return found.kind === 'held' || found.kind === 'moved' || found.kind === 'capped' || found.kind === 'broken'
}

function numberOf({ first, end }: TieExtent): number {
  return end - first
}

function isSame(some: Set<string>, others: Set<string>): boolean {
  return some.size === others.size && some.isSubsetOf(others)
}
