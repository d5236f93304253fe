import { toTimestamp } from '../billing/instants.ts'
import { askWindow, ChainBroken, whyUnserved } from './fetch-window.ts'
import { BorderSearch, choosePageBelow } from './find-window.ts'
import type { ReadStep } from './range-state.ts'
import type { Reading } from './reading.ts'
import { takeGroup } from './ties.ts'
import { oldestOf, toLink, type Window } from './window.ts'

/** How often the chain may restart at the top because a tie group no longer has a newer record above it. */
const maxRestarts = 10
/** The most windows that are requested for one link, and how many of them may fail, or lie past the end of the list. */
const maxTries = 30
const maxLost = 3
const maxBeyond = 3
/** How often the newest page is requested for one link. */
const maxTops = 3

/**
 * Reads the list window by window, each linked to the one before, from the newest record to the oldest.
 * When it returns, every record that was in the list throughout has been yielded.
 *
 * One request at a time: a window that is chosen after the last answer is chosen by where the list is now. Several
 * requests at once come from several ranges.
 * @throws {ChainBroken | RequestsUsedUp}
 */
export async function* followChain(reading: Reading): AsyncGenerator<ReadStep, void> {
  const { state, frontier } = reading
  let isTop = frontier.at === Infinity
  // An attempt that resumes after the last window asks for nothing more.
  for (let restarts = 0; !state.sawEnd;) {
    const found = yield* findLink(reading, isTop)
    if (found === undefined) return
    if (found.isNew && found.tries > 1) state.counts.linksRepaired++
    isTop = yield* join(reading, found)
    if (isTop && ++restarts > maxRestarts)
      throw new ChainBroken(`the newest records kept changing: ${maxRestarts} reads of them did not agree`)
    if (!isTop && !state.sawEnd && reading.endless !== undefined) throw new ChainBroken(reading.endless)
  }
}

interface Linked {
  window: Window
  /** It shows something older than the frontier. */
  isNew: boolean
  tries: number
}

/**
 * Requests windows near the frontier until one links: first the one that should, then others by search. If no record
 * above the frontier is left, or no other window links, the newest page is requested: it links by itself if it
 * reaches the frontier. Undefined if the list is empty.
 */
async function* findLink(
  reading: Reading,
  startsAtTop: boolean,
): AsyncGenerator<ReadStep, Linked | undefined> {
  const { frontier, sizes, state } = reading
  const border = new BorderSearch(sizes, state.place)
  let isTop = startsAtTop
  let isTopEmpty = false
  let [tops, lost, beyond] = [0, 0, 0]
  for (;;) {
    const answer = isTop
      ? await askWindow(reading, { page: 1, pageSize: reading.sizes.most }, { descending: true })
      : await askWindow(reading, choosePageBelow(border.next(), reading.sizes))
    // Not even the newest page comes: the service is down, which says nothing about the list.
    if (answer.kind === 'lost' && isTop) throw answer.error
    let isNextTop = false
    if (answer.kind === 'window') {
      const { window } = answer
      // Both ends of the list are empty.
      if (window.records.length === 0) reading.certifyEmpty(window)
      if (isTopEmpty && window.fromStart && window.records.length === 0) return undefined
      const link = toLink(window, frontier)
      if (link === 'links' || link === 'stuck')
        return { window, isNew: link === 'links', tries: border.tries }
      if (isTop) {
        isTopEmpty = window.records.length === 0
        if (reading.count !== undefined) border.guess(Math.max(0, reading.count - window.records.length))
      } else if (link === 'over') border.sawOver(window.low)
      else {
        border.sawUnder(window.low + window.records.length - 1)
        isNextTop = window.atEnd
      }
    } else if (answer.kind === 'lost') {
      lost++
      border.noAnswer()
    } else {
      beyond++
      border.sawOver(answer.low)
    }
    if (isTop) tops++
    const isExhausted = border.tries >= maxTries || lost >= maxLost
    if (isTop && (isExhausted || tops >= maxTops))
      throw new ChainBroken(whyBroken(reading, { lost, tries: border.tries }))
    isTop = !isTop && (isNextTop || isExhausted || beyond === maxBeyond)
    yield await reading.step()
  }
}

function whyBroken(reading: Reading, { lost, tries }: { lost: number; tries: number }): string {
  const { frontier } = reading
  const where = frontier.at === Infinity ? 'at the newest record' : `at ${toTimestamp(frontier.at)}`
  if (lost >= maxLost)
    return `the chain broke ${where}: ${lost} requests for windows there failed although the newest page could be read`
  const why = whyUnserved(reading) ?? `none of ${tries} windows held both a newer and an older record`
  return `the chain broke ${where}: ${why}`
}

/**
 * Takes a window that links, and the tie group that extends past its end, if there is one. Returns whether the chain must
 * restart at the top, because no record is newer than the group any more.
 */
async function* join(reading: Reading, { window, isNew }: Linked): AsyncGenerator<ReadStep, boolean> {
  if (isNew) yield await reading.take(window)
  if (isNew && (!isOneGroupAtTop(window) || reading.isBelow(oldestOf(window)))) return false
  const group = yield* takeGroup(reading, window)
  if (group.kind === 'enclosed') yield await reading.take(group.window)
  return group.kind === 'moved'
}

/** All records of the window have the same key, and no other window can hold a newer one. */
function isOneGroupAtTop(window: Window): boolean {
  return window.fromTop && !window.fromStart && window.first === window.last
}
