import { followChain } from './chain.ts'
import { ChainBroken, RequestsUsedUp } from './fetch-window.ts'
import { checkStatuses, findHidden, watchStatuses } from './hidden-records.ts'
import { toOutcome, type ReadOutcome } from './outcome.ts'
import { readPages } from './page-by-page.ts'
import {
  newPass,
  startState,
  statusesToWatch,
  type IdSet,
  type RangeState,
  type ReadOptions,
  type ReadStep,
} from './range-state.ts'
import { Reading } from './reading.ts'
import { identityOf } from './record.ts'

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
  const once = withOneSet(options)
  const statuses = statusesToWatch(options)
  let reading = new Reading(once, options.state ?? startState(options))
  if (options.state === undefined && statuses.length > 0) await watchStatuses(reading)
  for (;;) {
    yield* readPass(reading)
    const { state } = reading
    if (state.capped) break
    if (state.statusesRead === -1) {
      if (state.watched === undefined) break
      // An attempt that resumes after the look does not look again: a record that it found may have moved, others have not.
      if (!state.hiddenFound && state.statusCheck === undefined) {
        state.hiddenFound = await findHidden(reading)
        reading.certify({ looked: statuses, hidden: state.hiddenFound })
        if (!state.hiddenFound) state.statusCheck = await checkStatuses(reading)
        yield await reading.step()
      }
      if (!state.hiddenFound) break
    }
    state.statusesRead++
    if (state.statusesRead >= statuses.length) break
    reading = new Reading(once, { ...state, ...newPass })
  }
  const repeatedIds = (await options.repeatedIds?.()) ?? []
  if (repeatedIds.length > 0) reading.addReason(whyRepeated(repeatedIds))
  return toOutcome(reading, repeatedIds)
}

/** `readList`, with the ids of all records in memory. */
export async function* readInMemory(
  options: Omit<ReadOptions, 'idSet' | 'now'>,
): AsyncGenerator<ReadStep, ReadOutcome> {
  const ids = new Set<string>()
  const add: IdSet['add'] = (added) => added.map(({ id }) => ids.size !== ids.add(id).size)
  const read = readList({ ...options, now: Date.now, idSet: async () => ({ add }) })
  for (;;) {
    const step = await read.next()
    if (step.done === true) return step.value
    for (const record of step.value.records) ids.add(identityOf(record))
    yield step.value
  }
}

/** Follows the chain; if it breaks, reads page by page. */
async function* readPass(reading: Reading): AsyncGenerator<ReadStep, void> {
  if (reading.state.phase === 'chain') yield* readChain(reading)
  if (reading.state.phase === 'pages') yield* untilItEnds(reading, readPages(reading))
}

/**
 * Reads one range of a list by a chain of its own, without looking for hidden records: that needs all ranges. The phase
 * of the last state says how it ended: `pages` if the chain broke, otherwise `ended`.
 *
 * @throws the same errors as `readList`
 */
export async function* readRange(
  options: ReadOptions & { state: RangeState },
): AsyncGenerator<ReadStep, void> {
  const reading = new Reading(withOneSet(options), options.state)
  if (reading.state.phase === 'chain') yield* readChain(reading)
}

async function* readChain(reading: Reading): AsyncGenerator<ReadStep, void> {
  reading.begin()
  yield* untilItEnds(reading, followChain(reading))
}

/** Reads on until all is read, no more requests may be made, or the chain breaks, and yields a last step that says so. */
async function* untilItEnds(
  reading: Reading,
  steps: AsyncGenerator<ReadStep, void>,
): AsyncGenerator<ReadStep, void> {
  const { state } = reading
  try {
    yield* steps
    state.phase = 'ended'
  } catch (error) {
    if (error instanceof ChainBroken) {
      reading.addReason(error.message)
      reading.certify({ broken: error.message })
      state.phase = 'pages'
    } else if (error instanceof RequestsUsedUp) {
      state.capped = true
      state.phase = 'ended'
    } else {
      // Where requests are limited, those of an attempt that fails count for the next one.
      if (reading.options.maxRequests !== undefined) yield reading.failedStep()
      throw error
    }
  }
  yield await reading.step()
}

function withOneSet(options: ReadOptions): ReadOptions {
  let ids: Promise<IdSet> | undefined
  return { ...options, idSet: () => (ids ??= options.idSet()) }
}

const named = 5

function whyRepeated(ids: readonly string[]): string {
  const more = ids.length > named ? ` and ${ids.length - named} more` : ''
  return `the service has more than one record under the same id: ${ids.slice(0, named).join(', ')}${more}`
}
