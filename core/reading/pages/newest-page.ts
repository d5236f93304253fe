import { choosePageBelow } from './page-choice.ts'
import type { Pass } from '../pass.ts'
import { identityOf } from '../record.ts'
import type { Answer, Source } from '../source.ts'

/**
 * Fetches the window that starts the chain: the newest records of the list, in one slice. It needs no link above it.
 *
 * If the service honours oldest first but not newest first, the end of the list is used instead. That nothing follows
 * is then only the service's claim, so it is requested twice.
 */
export async function fetchNewestPage(pass: Pass): Promise<Answer> {
  const { source } = pass
  if (!pass.topByEnd) {
    const answer = await source.ask({ page: 1, pageSize: source.sizes.most }, { descending: true })
    if (answer.kind !== 'wrong' || answer.unordered !== true) return answer
  }
  const end = await fetchLastPage(source)
  if (end.kind === 'window') pass.topByEnd = true
  return end
}

const maxTries = 6

async function fetchLastPage(source: Source): Promise<Answer> {
  let lastBefore: string | undefined
  let back = 1
  for (let time = 0; time < maxTries; time++) {
    const answer = await source.ask(choosePageBelow(Math.max(0, (source.count ?? 0) - back), source.sizes))
    if (answer.kind === 'beyond') back += source.sizes.least / 2
    else if (answer.kind !== 'window') return answer
    else if (answer.window.atEnd) {
      const last = answer.window.records.at(-1)
      const identity = last === undefined ? '' : identityOf(last)
      if (identity === lastBefore) return { kind: 'window', window: { ...answer.window, fromTop: true } }
      lastBefore = identity
    } else lastBefore = undefined
  }
  const reason = source.unserved ?? `the end of the list moved in each of ${maxTries} tries to read it`
  return { kind: 'wrong', reason }
}
