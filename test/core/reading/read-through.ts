import { customers } from '../../../core/billing/resources/customers.ts'
import { readList } from '../../../core/reading/read-list.ts'
import type { ReadOptions, RangeState } from '../../../core/reading/range-state.ts'
import type { ReadOutcome } from '../../../core/reading/outcome.ts'
import type { Random } from './drifting-list.ts'

export interface Taken {
  outcome: ReadOutcome
  /** Ids in the order they came. */
  ids: string[]
  restarts: number
}

/** A read of customers that nothing is asked of. */
export const readOptions = {
  resource: customers,
  testMode: false,
  readLagMs: 60_000,
  now: () => 1_800_000_000_000,
}

/** The whole of a set of ids, as a caller keeps it on disk. */
export function createIdSet(written: Iterable<string>) {
  const ids = new Set(written)
  return {
    add: (some: readonly { id: string }[]) =>
      some.map(({ id }) => {
        const isNew = !ids.has(id)
        ids.add(id)
        return isNew
      }),
  }
}

/** The ids that are there more than once. */
export function repeatedIn(ids: readonly string[]): string[] {
  const seen = new Set<string>()
  return ids.filter((id) => seen.size === seen.add(id).size)
}

/**
 * Reads a list to its end. With `crash`, the process dies after any step with that chance: what came since the
 * last checkpoint is lost, and another one resumes from its state, which was JSON text in between.
 */
export async function readThrough(
  options: Pick<ReadOptions, 'fetchPage'> & Partial<ReadOptions>,
  { crash = 0, random = () => 1 }: { crash?: number; random?: Random } = {},
): Promise<Taken> {
  let kept: string[] = []
  let checkpoint: string | undefined
  for (let restarts = 0; ; restarts++) {
    const ids = [...kept]
    const read = readList({
      ...readOptions,
      idSet: () => Promise.resolve(createIdSet(ids)),
      repeatedIds: () => Promise.resolve(repeatedIn(ids)),
      ...options,
      ...(checkpoint !== undefined && { state: JSON.parse(checkpoint) as RangeState }),
    })
    for (;;) {
      const step = await read.next()
      if (step.done === true) return { outcome: step.value, ids, restarts }
      for (const { id } of step.value.records) ids.push(String(id))
      if (random() < 0.5) {
        checkpoint = JSON.stringify(step.value.state)
        kept = [...ids]
      }
      if (restarts < 200 && random() < crash) break
    }
    await read.return(undefined as never)
  }
}
