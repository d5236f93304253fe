import type { Frontier } from './frontier.ts'
import { newestOf, oldestOf, type Window } from './window.ts'

/**
 * The position of a window relative to the frontier.
 *
 * `links`: it holds everything from the frontier down to its own oldest record, and some of that is new.
 * `stuck`: it reaches above the frontier, but its oldest record is at the frontier: more such records may lie below.
 * `over`: all its records are newer. `under`: none of its records is newer, so there may be a gap above it.
 */
export type Link = 'links' | 'stuck' | 'over' | 'under'

/**
 * A response is one contiguous slice. If it holds a record strictly newer than the frontier and an older one, it holds
 * everything between them that was in the list at that moment. A record *at* the frontier links only if all records of
 * that time have been taken; otherwise more of them may lie above it.
 */
export function toLink(window: Window, frontier: Frontier): Link {
  const newest = newestOf(window)
  const oldest = oldestOf(window)
  const reaches = window.fromTop || newest > frontier.at || (frontier.closed && newest === frontier.at)
  if (!reaches) return 'under'
  if (window.fromStart || oldest < frontier.at) return 'links'
  return oldest === frontier.at && !frontier.closed ? 'stuck' : 'over'
}
