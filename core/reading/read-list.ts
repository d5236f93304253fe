import { followChain } from './chain/chain.ts'
import { checkStatuses, findHidden, watchStatuses } from './hidden-records.ts'
import type { ReadOptions } from './options.ts'
import { toOutcome, type ReadOutcome } from './outcome.ts'
import { readPages } from './pages/page-by-page.ts'
import { Pass } from './pass.ts'
import { Reading } from './reading.ts'
import { newPass, startState, statusesToWatch } from './start-state.ts'
import type { ReadState, ReadStep } from './state.ts'

export type { ReadOptions, ReadOutcome, ReadState, ReadStep }

/**
 * Reads a list that changes during the read, and says whether it can prove that nothing is missing.
 *
 * Yields each record once, newest first while the chain holds. Each step carries the state to resume from: the loop may
 * be left at any step and resumed in another process.
 *
 * @throws {TestModeMismatch}
 * @throws errors of `fetchPage` other than lost requests; all steps yielded before remain valid
 */
export async function* readList(options: ReadOptions): AsyncGenerator<ReadStep, ReadOutcome> {
  const reading = new Reading(options, options.state ?? startState(options))
  const { state } = reading
  const statuses = statusesToWatch(options)
  if (options.state === undefined && statuses.length > 0) await watchStatuses(reading)
  let pass = new Pass(reading, { state: state.pass, status: statuses[state.statusesRead] })
  for (;;) {
    yield* readPass(reading, pass)
    if (state.capped) break
    if (state.statusesRead === -1) {
      if (state.watched === undefined) break
      state.hiddenFound = await findHidden(reading)
      if (!state.hiddenFound) {
        state.statusCheck = await checkStatuses(reading)
        break
      }
    }
    state.statusesRead++
    if (state.statusesRead >= statuses.length) break
    pass = new Pass(reading, { state: newPass, status: statuses[state.statusesRead] })
  }
  const repeatedIds = (await options.repeatedIds?.()) ?? []
  if (repeatedIds.length > 0) reading.addReason(whyRepeated(repeatedIds))
  return toOutcome(reading, { ...pass.checks, repeatedIds })
}

/** Follows the chain; if it breaks, reads page by page. */
async function* readPass(reading: Reading, pass: Pass): AsyncGenerator<ReadStep, void> {
  if (pass.phase === 'chain') {
    const end = yield* followChain(reading, pass)
    if (end.kind === 'broken') reading.addReason(end.reason)
    if (end.kind === 'capped') reading.state.capped = true
    pass.phase = end.kind === 'broken' ? 'pages' : 'ended'
    yield await pass.step()
  }
  if (pass.phase === 'pages') {
    yield* readPages(reading, pass)
    pass.phase = 'ended'
    yield await pass.step()
  }
}

const named = 5

function whyRepeated(ids: readonly string[]): string {
  const more = ids.length > named ? ` and ${ids.length - named} more` : ''
  return `the service has more than one record under the same id: ${ids.slice(0, named).join(', ')}${more}`
}
