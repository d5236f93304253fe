import { cutBelow } from './page-choice.ts'
import { Flight, type Flying } from './prefetch.ts'
import { takeGroup } from './tie-group.ts'
import { toLink } from './link.ts'
import { mostUndated, type Pass } from './pass.ts'
import type { Reading } from './reading.ts'
import { Seeking } from './seeking.ts'
import type { Answer } from './source.ts'
import type { ReadStep } from './state.ts'
import { askTop } from './newest-page.ts'
import { oldestOf, type Window } from './window.ts'

export type ChainEnd = { kind: 'whole' } | { kind: 'capped' } | { kind: 'broken'; reason: string }

/** How often a group of ties may turn out to have nothing newer above it any more. */
const mostMoves = 10

/**
 * Goes down the list, window by window, each linked to the one before, from the newest record to the oldest.
 * When it ends `whole`, every record that was in the list throughout has been handed out.
 */
export async function* followChain(reading: Reading, pass: Pass): AsyncGenerator<ReadStep, ChainEnd> {
  const { frontier } = pass
  const flight = new Flight(pass.source, reading.options.concurrency)
  let seeking = new Seeking(pass, { top: frontier.at === Infinity })
  for (let moves = 0; moves <= mostMoves;) {
    const head = seeking.top || seeking.apart ? undefined : flight.head(pass.place)
    const answer = await ask(pass, seeking, head)
    if (answer.kind === 'wrong') return { kind: 'broken', reason: answer.reason }
    if (answer.kind === 'capped') return answer
    if (seeking.emptyTop && isEmptyStart(answer)) return { kind: 'whole' }
    const link = answer.kind === 'window' ? toLink(answer.window, frontier) : answer.kind
    const meant = head !== undefined && flight.wasMeant(head, pass.place) ? head : undefined
    // One that lies too low is for later.
    if (head !== undefined && link !== 'under') flight.drop()
    if (answer.kind !== 'window' || (link !== 'links' && link !== 'stuck')) {
      const reason = seeking.missed({ answer, link, head, meant }, pass)
      if (reason !== undefined) return { kind: 'broken', reason }
      yield await pass.step()
      continue
    }
    flight.took(head)
    if (link === 'links') seeking.linked(answer.window, meant, pass)
    if (link === 'links' && seeking.search.tries > 0) reading.state.counts.linksMended++
    const joined = yield* join(reading, pass, { window: answer.window, isNew: link === 'links' })
    if (joined.kind === 'whole' || joined.kind === 'broken' || joined.kind === 'capped') return joined
    if (joined.kind === 'moved') moves++
    seeking = new Seeking(pass, { top: joined.kind === 'moved' })
  }
  return {
    kind: 'broken',
    reason: `the newest records kept changing: ${mostMoves} looks at them did not agree`,
  }
}

/** Takes a window that links, and the group of ties that reaches over its end, if one is known to. */
async function* join(
  reading: Reading,
  pass: Pass,
  { window, isNew }: { window: Window; isNew: boolean },
): AsyncGenerator<ReadStep, ChainEnd | { kind: 'joined' } | { kind: 'moved' }> {
  if (isNew) yield await pass.take(window)
  let last = window
  if (!isNew || isOneGroupAtTop(window)) {
    const group = yield* takeGroup(reading, pass, window)
    if (group.kind === 'broken' || group.kind === 'capped' || group.kind === 'moved') return group
    if (group.kind === 'held') {
      last = group.window
      yield await pass.take(last)
    }
  }
  if (last.fromStart || oldestOf(last) < reading.until) return { kind: 'whole' }
  if (reading.state.undated.length > mostUndated)
    return { kind: 'broken', reason: `more than ${mostUndated} records can't be placed` }
  return { kind: 'joined' }
}

function ask(pass: Pass, seeking: Seeking, head: Flying | undefined): Promise<Answer> {
  if (seeking.top) return askTop(pass)
  if (head !== undefined) return head.answer
  return pass.source.ask(cutBelow(seeking.search.next(), pass.source.sizes))
}

/** Page 1, oldest first, holds nothing: after an empty top there is nothing to link. */
function isEmptyStart(answer: Answer): boolean {
  return answer.kind === 'window' && answer.window.fromStart && answer.window.records.length === 0
}

/** No other window can hold a record that is newer. */
function isOneGroupAtTop(window: Window): boolean {
  return window.fromTop && !window.fromStart && window.first === window.last
}
