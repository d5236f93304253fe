import { cutAround } from './page-choice.ts'
import { inWords, look, measure, type Decided, type Extent, type Group, type Looked } from './tie-extent.ts'
import { toTimestamp } from './instant.ts'
import type { Pass } from './pass.ts'
import type { Reading } from './reading.ts'
import { identityOf } from './record.ts'
import type { ReadStep } from './state.ts'
import { newestOf, placeAbove, type Window } from './window.ts'

/** `swept`: all of the group has been taken without any one window that holds it. */
export type GroupEnd = Decided | { kind: 'swept' }

const mostSweeps = 10
const timesEnclosed = 4
/** The ids of a group are kept while it is swept: about 5 MB at this many. */
const mostRecords = 50_000

/**
 * Takes a group of equal keys that the window at the frontier does not hold whole.
 *
 * Ties come in another order each time, so two windows that hold a half each prove nothing. One window must hold
 * all of it, with a record on either side; where none can, the group is swept.
 */
export async function* takeGroup(
  reading: Reading,
  pass: Pass,
  window: Window,
): AsyncGenerator<ReadStep, GroupEnd> {
  const at = pass.frontier.at
  const group: Group = { at, descending: window.fromTop && window.descending && newestOf(window) === at }
  if (group.descending && window.atEnd) return yield* agreeOnWhole(reading, pass, { group, window })
  if (group.descending)
    return yield* sweep(reading, pass, { group, guess: { first: 0, behind: window.keys.length } })
  let guess: Partial<Extent> = toGuess(pass, window)
  for (let time = 0; time < timesEnclosed; time++) {
    const extent = await measure(pass, group, guess)
    if (extent.kind !== 'extent') return extent
    guess = extent
    const cut = cutAround(Math.max(0, extent.first - 1), extent.behind, { ...pass.source.sizes, least: 1 })
    if (cut === undefined) break
    const looked = await look(pass, group, cut)
    yield await pass.step()
    if (isDecided(looked)) return looked
  }
  return yield* sweep(reading, pass, { group, guess })
}

function toGuess(pass: Pass, window: Window): Partial<Extent> {
  const behind = window.descending ? pass.place : placeAbove(window, pass.frontier.at)
  return behind === undefined ? {} : { behind }
}

/**
 * Reads all places of the group over and over, until two sweeps in a row show the same records, as many as there
 * are places before, between and after them: then none can have hidden from both. Each sweep cuts the list at
 * other places, so that two copies of the service that differ by a record can't hide one at a border twice.
 */
async function* sweep(
  reading: Reading,
  pass: Pass,
  { group, guess }: { group: Group; guess: Partial<Extent> },
): AsyncGenerator<ReadStep, GroupEnd> {
  let before = await measure(pass, group, guess)
  let agreed: Set<string> | undefined
  for (let sweeps = 1; sweeps <= mostSweeps; sweeps++) {
    if (before.kind !== 'extent') return before
    if (numberOf(before) > mostRecords)
      return {
        kind: 'broken',
        reason: `${inWords(group)} has ${numberOf(before)} records, too many to sweep`,
      }
    const ids = new Set<string>()
    const size =
      pass.source.sizes.most - ((sweeps * 7) % (pass.source.sizes.most - pass.source.sizes.least + 1))
    for (let page = Math.floor(before.first / size) + 1; (page - 1) * size < before.behind; page++) {
      const looked = await look(pass, group, { page, pageSize: size })
      if (isDecided(looked)) return looked
      yield await pass.step(
        looked.kind === 'window' ? takeTied(pass, { window: looked.window, group, ids }) : undefined,
      )
    }
    const after: Decided | Extent = await measure(pass, group, before)
    if (after.kind !== 'extent') return after
    const complete = ids.size === numberOf(before) && ids.size === numberOf(after)
    if (complete && agreed !== undefined && isSame(ids, agreed)) {
      close({ reading, pass, group, sweeps, records: ids.size })
      // A record of the group links now, as none of them is missing.
      pass.place = group.descending ? Math.max(0, (pass.source.count ?? 0) - after.behind) : after.first
      return { kind: 'swept' }
    }
    agreed = complete ? ids : undefined
    before = after
  }
  return { kind: 'broken', reason: `${inWords(group)} kept changing: ${mostSweeps} sweeps did not agree` }
}

/**
 * A list that is one group and fits one window: no record on either side can tell that the window holds it
 * whole. So four windows, newest first and oldest first in turn, must show the same records, as many as the
 * service counts.
 */
async function* agreeOnWhole(
  reading: Reading,
  pass: Pass,
  { group, window }: { group: Group; window: Window },
): AsyncGenerator<ReadStep, GroupEnd> {
  let shown = new Set(window.records.map(identityOf))
  let agreeing = isWhole(window, group) ? 1 : 0
  const page = { page: 1, pageSize: pass.source.sizes.most }
  for (let time = 1; time <= mostSweeps; time++) {
    const looked = await look(pass, { ...group, descending: time % 2 === 0 }, page)
    if (looked.kind !== 'window') {
      if (looked.kind === 'lost' || looked.kind === 'beyond') continue
      return looked
    }
    const ids = new Set<string>()
    yield await pass.step(takeTied(pass, { window: looked.window, group, ids }))
    const whole = isWhole(looked.window, group)
    agreeing = whole ? (isSame(ids, shown) ? agreeing + 1 : 1) : 0
    shown = ids
    if (agreeing >= 4 && looked.window.fromStart) {
      close({ reading, pass, group, sweeps: agreeing, records: ids.size })
      return { kind: 'held', window: looked.window }
    }
  }
  return {
    kind: 'broken',
    reason: `${inWords(group)}, the whole list, kept changing: ${mostSweeps} windows did not agree`,
  }
}

function isWhole(window: Window, { at }: Group): boolean {
  const { records, keys, count, atEnd, pageSize } = window
  return (
    atEnd &&
    records.length < pageSize &&
    (count === undefined || count === records.length) &&
    keys.every((key) => Math.abs(key) === Math.abs(at))
  )
}

/** Takes what is new of the group in a window, and notes all of the group that the window shows. */
function takeTied(pass: Pass, { window, group, ids }: { window: Window; group: Group; ids: Set<string> }) {
  const key = window.descending ? -group.at : group.at
  for (const [at, record] of window.records.entries())
    if (window.keys[at] === key) ids.add(identityOf(record))
  return pass.takeFrom(window, group.at)
}

function close(options: {
  reading: Reading
  pass: Pass
  group: Group
  sweeps: number
  records: number
}): void {
  const { reading, pass, group, sweeps, records } = options
  pass.frontier.closed = true
  reading.swept({ at: toTimestamp(group.at), records, sweeps })
}

function isDecided(looked: Looked): looked is Decided {
  return (
    looked.kind === 'held' || looked.kind === 'moved' || looked.kind === 'capped' || looked.kind === 'broken'
  )
}

function numberOf({ first, behind }: Extent): number {
  return behind - first
}

function isSame(some: Set<string>, others: Set<string>): boolean {
  return some.size === others.size && some.isSubsetOf(others)
}
