import { cutBelow } from './page-choice.ts'
import type { Pass } from './pass.ts'
import { identityOf } from './record.ts'
import type { Answer, Source } from './source.ts'

/**
 * The window that starts the chain: the newest records of the list, in one slice. It needs no link above it.
 *
 * Where newest first is not honoured but oldest first is, the end of the list stands for it: that nothing
 * follows is then the service's word, so it is asked twice.
 */
export async function askTop(pass: Pass): Promise<Answer> {
  const { source } = pass
  if (!pass.topByEnd) {
    const answer = await source.ask({ page: 1, pageSize: source.sizes.most }, { descending: true })
    if (answer.kind !== 'wrong' || answer.unordered !== true) return answer
  }
  const end = await askEnd(source)
  if (end.kind === 'window') pass.topByEnd = true
  return end
}

const mostTries = 6

async function askEnd(source: Source): Promise<Answer> {
  let lastBefore: string | undefined
  let back = 1
  for (let time = 0; time < mostTries; time++) {
    const answer = await source.ask(cutBelow(Math.max(0, (source.count ?? 0) - back), source.sizes))
    if (answer.kind === 'beyond') back += source.sizes.least / 2
    else if (answer.kind !== 'window') return answer
    else if (answer.window.atEnd) {
      const last = answer.window.records.at(-1)
      const identity = last === undefined ? '' : identityOf(last)
      if (identity === lastBefore) return { kind: 'window', window: { ...answer.window, fromTop: true } }
      lastBefore = identity
    } else lastBefore = undefined
  }
  return { kind: 'wrong', reason: `the end of the list moved while it was looked for, ${mostTries} times` }
}
