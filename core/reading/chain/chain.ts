import { choosePageBelow } from '../pages/page-choice.ts'
import { Prefetch, type PrefetchedWindow } from '../pages/prefetch.ts'
import { takeGroup } from '../ties/tie-group.ts'
import { toLink } from './link.ts'
import { maxUndated, type Pass } from '../pass.ts'
import type { Reading } from '../reading.ts'
import { LinkSearch } from './link-search.ts'
import type { Answer } from '../source.ts'
import type { ReadStep } from '../state.ts'
import { fetchNewestPage } from '../pages/newest-page.ts'
import { oldestOf, type Window } from './window.ts'

export type ChainEnd = { kind: 'whole' } | { kind: 'capped' } | { kind: 'broken'; reason: string }

/** How often the chain may restart at the top because a tie group no longer has a newer record above it. */
const maxRestarts = 10

/**
 * Reads the list window by window, each linked to the one before, from the newest record to the oldest.
 * If it ends `whole`, every record that was in the list throughout has been yielded.
 */
export async function* followChain(reading: Reading, pass: Pass): AsyncGenerator<ReadStep, ChainEnd> {
  const { frontier } = pass
  const prefetch = new Prefetch(pass.source, {
    concurrency: () => reading.concurrency,
    end: reading.state.range?.end,
  })
  let search = new LinkSearch(pass, { top: frontier.at === Infinity })
  for (let restarts = 0; restarts <= maxRestarts;) {
    const head = search.top || search.apart ? undefined : prefetch.head(pass.place)
    const answer = await ask(pass, search, head)
    if (answer.kind === 'wrong') return { kind: 'broken', reason: answer.reason }
    if (answer.kind === 'capped') return answer
    if (search.emptyTop && isEmptyStart(answer)) return { kind: 'whole' }
    const link = answer.kind === 'window' ? toLink(answer.window, frontier) : answer.kind
    const predicted = head !== undefined && prefetch.wasPredicted(head, pass.place) ? head : undefined
    // A window that lies too low is used later.
    if (head !== undefined && link !== 'under') prefetch.drop()
    if (answer.kind !== 'window' || (link !== 'links' && link !== 'stuck')) {
      const reason = search.missed({ answer, link, head, predicted }, pass)
      if (reason !== undefined) return { kind: 'broken', reason }
      yield await pass.step()
      continue
    }
    prefetch.taken(head)
    if (link === 'links') search.linked(answer.window, predicted, pass)
    if (link === 'links' && search.border.tries > 0) reading.state.counts.linksRepaired++
    const joined = yield* join(reading, pass, { window: answer.window, isNew: link === 'links' })
    if (joined.kind === 'whole' || joined.kind === 'broken' || joined.kind === 'capped') return joined
    if (joined.kind === 'moved') restarts++
    search = new LinkSearch(pass, { top: joined.kind === 'moved' })
  }
  return {
    kind: 'broken',
    reason: `the newest records kept changing: ${maxRestarts} reads of them did not agree`,
  }
}

/** Takes a window that links, and the tie group that extends past its end, if there is one. */
async function* join(
  reading: Reading,
  pass: Pass,
  { window, isNew }: { window: Window; isNew: boolean },
): AsyncGenerator<ReadStep, ChainEnd | { kind: 'joined' } | { kind: 'moved' }> {
  if (isNew) yield await pass.take(window)
  let last = window
  if (!isNew || (isOneGroupAtTop(window) && !reading.isBelow(oldestOf(window)))) {
    const group = yield* takeGroup(reading, pass, window)
    if (group.kind === 'broken' || group.kind === 'capped' || group.kind === 'moved') return group
    if (group.kind === 'held') {
      last = group.window
      yield await pass.take(last)
    }
  }
  if (reading.state.range !== undefined && reading.state.undated.length > 0)
    return { kind: 'broken', reason: reading.undatedReason }
  if (last.fromStart || reading.isBelow(oldestOf(last))) return { kind: 'whole' }
  if (reading.state.undated.length > maxUndated)
    return { kind: 'broken', reason: `more than ${maxUndated} records have no readable key` }
  const { endless } = pass
  return endless === undefined ? { kind: 'joined' } : { kind: 'broken', reason: endless }
}

function ask(pass: Pass, search: LinkSearch, head: PrefetchedWindow | undefined): Promise<Answer> {
  if (search.top) return fetchNewestPage(pass)
  if (head !== undefined) return head.answer
  return pass.source.ask(choosePageBelow(search.border.next(), pass.source.sizes))
}

/** Page 1, oldest first, is empty: after an empty newest page there is nothing to link. */
function isEmptyStart(answer: Answer): boolean {
  return answer.kind === 'window' && answer.window.fromStart && answer.window.records.length === 0
}

/** All records of the window have the same key, and no other window can hold a newer one. */
function isOneGroupAtTop(window: Window): boolean {
  return window.fromTop && !window.fromStart && window.first === window.last
}
