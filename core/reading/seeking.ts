import { toTimestamp } from './instant.ts'
import type { Flying } from './prefetch.ts'
import type { Link } from './link.ts'
import type { Pass } from './pass.ts'
import { Search } from './link-search.ts'
import type { Answer } from './source.ts'
import { placeAbove, type Window } from './window.ts'

const mostTries = 30
const mostTops = 3
const mostLost = 3
const mostBeyond = 3

/** A window that was asked for and does not link. */
export interface Miss {
  answer: Exclude<Answer, { kind: 'wrong' | 'capped' }>
  link: Link | 'beyond' | 'lost'
  /** Where it was one of those in flight. */
  head: Flying | undefined
  /** The same, where its place was known well. */
  meant: Flying | undefined
}

/**
 * The search for one link: first the windows in flight, then others, one at a time, until one holds. Where
 * nothing newer is left, or 30 tries are used up, the top of the list is asked for: it links by itself where it
 * reaches down to the frontier.
 */
export class Seeking {
  readonly search: Search
  /** Ask for the top of the list next. */
  top: boolean
  /** What is in flight lies too low, or is of no use: ask for others. */
  apart = false
  /** The top of the list was just seen to hold nothing at all. */
  emptyTop = false
  #missed: Flying | undefined
  #tops = 0
  #lost = 0
  #beyond = 0

  constructor({ place, source }: Pass, { top }: { top: boolean }) {
    this.search = new Search(source.sizes, place)
    this.top = top
  }

  /** Learns from a window that does not link; says why, where nothing is left to try. */
  missed({ answer, link, head, meant }: Miss, pass: Pass): string | undefined {
    if (this.top) return this.#missedTop(answer, pass)
    if (link === 'lost') {
      this.#lost++
      this.search.sawNothing()
    }
    if (answer.kind === 'beyond') {
      this.#beyond++
      this.search.sawOver(answer.low)
    }
    if (answer.kind === 'window' && link === 'under') {
      this.search.sawUnder(answer.window.low + answer.window.records.length - 1)
      if (answer.window.atEnd) this.top = true
      this.#missed ??= meant
    }
    // One that was foretold may only have been passed by another; one from the place that is known tells more.
    const foretold = head?.after !== undefined
    if (answer.kind === 'window' && link === 'over' && !foretold) this.search.sawOver(answer.window.low)
    if (link !== 'over' || !foretold) this.apart = true
    const exhausted = this.search.tries >= mostTries || this.#lost >= mostLost
    this.top ||= exhausted || this.#beyond === mostBeyond
    return undefined
  }

  #missedTop(answer: Miss['answer'], pass: Pass): string | undefined {
    // Not even the first page comes: the service is away, and that is no verdict.
    if (answer.kind === 'lost') throw answer.error
    this.top = false
    this.#tops++
    this.emptyTop = answer.kind === 'window' && answer.window.records.length === 0
    if (this.search.tries >= mostTries || this.#tops >= mostTops || this.#lost >= mostLost)
      return this.#broken(pass)
    const { count } = pass.source
    if (answer.kind === 'window' && count !== undefined)
      this.search.guess(Math.max(0, count - answer.window.records.length))
    return undefined
  }

  /** A window links: now it is known what margin would have done, for it or for the one that was meant to. */
  linked(window: Window, meant: Flying | undefined, pass: Pass): void {
    if (window.descending || pass.frontier.closed) return
    const flying = meant ?? this.#missed
    flying?.margin.learn(placeAbove(window, pass.frontier.at) - flying.expected)
  }

  #broken({ frontier }: Pass): string {
    const where = frontier.at === Infinity ? 'at the newest record' : `at ${toTimestamp(frontier.at)}`
    return this.#lost >= mostLost
      ? `the chain broke ${where}: ${this.#lost} requests for the windows there failed while the newest page could be read`
      : `the chain broke ${where}: ${this.search.tries} windows were tried, and none held both a newer and an older record`
  }
}
