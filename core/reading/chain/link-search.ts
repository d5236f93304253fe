import { toTimestamp } from '../instant.ts'
import type { PrefetchedWindow } from '../pages/prefetch.ts'
import type { Link } from './link.ts'
import type { Pass } from '../pass.ts'
import { BorderSearch } from './border-search.ts'
import type { Answer } from '../source.ts'
import { placeAbove, type Window } from './window.ts'

const maxTries = 30
const maxTops = 3
const maxLost = 3
const maxBeyond = 3

/** A window that does not link. */
export interface Miss {
  answer: Exclude<Answer, { kind: 'wrong' | 'capped' }>
  link: Link | 'beyond' | 'lost'
  /** Set if it was prefetched. */
  head: PrefetchedWindow | undefined
  /** Set if it was prefetched and its place was well known. */
  predicted: PrefetchedWindow | undefined
}

/**
 * The search for one link: first the prefetched windows, then others, one at a time, until one links. If no newer
 * record is left, or after 30 tries, the newest page is requested: it links by itself if it reaches the frontier.
 */
export class LinkSearch {
  readonly border: BorderSearch
  /** Request the newest page next. */
  top: boolean
  /** The prefetched windows are too low or useless: request others. */
  apart = false
  /** The newest page was just seen to be empty. */
  emptyTop = false
  #missed: PrefetchedWindow | undefined
  #tops = 0
  #lost = 0
  #beyond = 0

  constructor({ place, source }: Pass, { top }: { top: boolean }) {
    this.border = new BorderSearch(source.sizes, place)
    this.top = top
  }

  /** Learns from a window that does not link. Returns a reason if nothing is left to try. */
  missed({ answer, link, head, predicted }: Miss, pass: Pass): string | undefined {
    if (this.top) return this.#missedTop(answer, pass)
    if (link === 'lost') {
      this.#lost++
      this.border.noAnswer()
    }
    if (answer.kind === 'beyond') {
      this.#beyond++
      this.border.sawOver(answer.low)
    }
    if (answer.kind === 'window' && link === 'under') {
      this.border.sawUnder(answer.window.low + answer.window.records.length - 1)
      if (answer.window.atEnd) this.top = true
      this.#missed ??= predicted
    }
    // A predicted window may only have been overtaken; one chosen from a known place tells more.
    const isPredicted = head?.after !== undefined
    if (answer.kind === 'window' && link === 'over' && !isPredicted) this.border.sawOver(answer.window.low)
    if (link !== 'over' || !isPredicted) this.apart = true
    const exhausted = this.border.tries >= maxTries || this.#lost >= maxLost
    this.top ||= exhausted || this.#beyond === maxBeyond
    return undefined
  }

  #missedTop(answer: Miss['answer'], pass: Pass): string | undefined {
    // Not even the first page comes: the service is down, which says nothing about the list.
    if (answer.kind === 'lost') throw answer.error
    this.top = false
    this.#tops++
    this.emptyTop = answer.kind === 'window' && answer.window.records.length === 0
    if (this.border.tries >= maxTries || this.#tops >= maxTops || this.#lost >= maxLost)
      return this.#broken(pass)
    const { count } = pass.source
    if (answer.kind === 'window' && count !== undefined)
      this.border.guess(Math.max(0, count - answer.window.records.length))
    return undefined
  }

  /** A window links: records the margin that it, or the predicted one, would have needed. */
  linked(window: Window, predicted: PrefetchedWindow | undefined, pass: Pass): void {
    if (window.descending || pass.frontier.closed) return
    const prefetched = predicted ?? this.#missed
    prefetched?.margin.learn(placeAbove(window, pass.frontier.at) - prefetched.expected)
  }

  #broken({ frontier, source }: Pass): string {
    const where = frontier.at === Infinity ? 'at the newest record' : `at ${toTimestamp(frontier.at)}`
    if (this.#lost >= maxLost)
      return `the chain broke ${where}: ${this.#lost} requests for windows there failed although the newest page could be read`
    return source.unserved !== undefined
      ? `the chain broke ${where}: ${source.unserved}`
      : `the chain broke ${where}: none of ${this.border.tries} windows held both a newer and an older record`
  }
}
