import type { Frontier } from './frontier.ts'
import { newestOf, oldestOf, type Window } from './window.ts'

/**
 * How a window lies to the frontier.
 *
 * `links`: it holds everything from the frontier down to its own oldest record, and some of that is new.
 * `stuck`: it reaches above the frontier, but its oldest record is as old: more of them may lie below it.
 * `over`: all it holds is newer. `under`: nothing in it is newer, so what lies above it is not known.
 */
export type Link = 'links' | 'stuck' | 'over' | 'under'

/**
 * A response is one contiguous slice, so one that holds a record strictly newer than the frontier and one that
 * is older holds everything between them that was in the list at that moment. A record *at* the frontier links
 * only where all of its time have been taken: others of them may lie on the far side of it.
 */
export function toLink(window: Window, frontier: Frontier): Link {
  const newest = newestOf(window)
  const oldest = oldestOf(window)
  const reaches = window.fromTop || newest > frontier.at || (frontier.closed && newest === frontier.at)
  if (!reaches) return 'under'
  if (window.fromStart || oldest < frontier.at) return 'links'
  return oldest === frontier.at && !frontier.closed ? 'stuck' : 'over'
}
