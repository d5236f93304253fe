import { followChain } from '../chain/chain.ts'
import type { ReadOptions } from '../options.ts'
import { Pass } from '../pass.ts'
import { Reading } from '../reading.ts'
import type { ReadState, ReadStep } from '../state.ts'

/**
 * Reads one range of a list by a chain of its own, without looking for hidden records: that needs all ranges. The phase
 * of the last state says how it ended: `ended` if the chain is whole, `pages` if it broke.
 *
 * @throws the same errors as `readList`
 */
export async function* readRange(
  options: ReadOptions & { state: ReadState },
): AsyncGenerator<ReadStep, ReadState> {
  const reading = new Reading(options, options.state)
  const pass = new Pass(reading, { state: options.state.pass })
  if (pass.phase !== 'chain') return options.state
  const end = yield* followChain(reading, pass)
  if (end.kind === 'broken') reading.addReason(end.reason)
  if (end.kind === 'capped') reading.addReason('the read of a range was cut short')
  pass.phase = end.kind === 'whole' ? 'ended' : 'pages'
  const last = await pass.step()
  yield last
  return last.state
}
