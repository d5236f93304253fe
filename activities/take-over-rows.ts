import { takeOver } from '../changes/take-over.ts'
import type { ImportPlan } from '../imports/import-plan.ts'
import { claim, isClosedTo, ownerOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { claimOf, learnClaims } from './import-gap.ts'
import type { Stock } from './take-stock.ts'

/** Whether what other runs hold was sent, although a ledger that was put back from a backup calls it unsent. */
export async function learnWhatWasSent({
  deps,
  stock,
}: {
  deps: ActivityDeps
  stock: Stock
}): Promise<boolean> {
  let learned = 0
  for (const [run, { waiting }] of stock.held)
    if (waiting.length > 0) learned += await learnClaims({ deps, run })
  return learned > 0
}

/**
 * Rows that wait in a run which goes on are that run's; those of one that has ended may be sent by another, which is
 * how a mended file takes the place of one that was stopped.
 */
export async function keepWhatGoesOn({ deps, stock }: { deps: ActivityDeps; stock: Stock }): Promise<void> {
  for (const [run, held] of stock.held) {
    if (held.waiting.length === 0) continue
    const owner = ownerOf()
    const claimed = { what: claimOf(run), owner }
    const { taken } = await deps.state.claims.take({ ...claimed, isClosed: isClosedTo(owner) })
    if (taken) {
      await deps.state.claims.release(claimed)
      continue
    }
    held.others.push(...held.waiting.map(({ row }) => row))
    held.waiting = []
  }
}

/** Takes them over: meanwhile the run that had them can't begin anew. */
export async function takeOverRows({
  deps,
  plan,
  stock,
}: {
  deps: ActivityDeps
  plan: ImportPlan
  stock: Stock
}): Promise<void> {
  const { ledger, claims } = deps.state
  for (const [run, { waiting }] of stock.held) {
    if (waiting.length === 0) continue
    await claim({ deps, what: claimOf(run) })
    await takeOver({ ledger, rows: waiting.map(({ held }) => held), by: plan.run })
    await claims.release({ what: claimOf(run), owner: ownerOf() })
  }
}
