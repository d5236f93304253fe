import { takeOver } from '../../changes/send/take-over.ts'
import type { ImportPlan } from '../plan.ts'
import { takeLease } from '../../runs/lease.ts'
import { type ImportGapDeps, leaseOf, learnClaims } from '../ledger-gap.ts'
import type { Stock } from './match-ledger.ts'

/** Whose rows are taken over, and by whom. */
type TakeOver = ImportGapDeps & { stock: Stock }

/** Whether what other runs hold was sent, although a ledger that was put back from a backup calls it unsent. */
export async function learnWhatWasSent({ stock, ...deps }: TakeOver): Promise<boolean> {
  let learned = 0
  for (const [run, { waiting }] of stock.held)
    if (waiting.length > 0) learned += await learnClaims({ ...deps, run })
  return learned > 0
}

/**
 * Rows that wait in a run which goes on are that run's; those of one that has ended may be sent by another, which is
 * how a mended file takes the place of one that was stopped.
 */
export async function keepWhatGoesOn({ state, stock, owner, isClosed }: TakeOver): Promise<void> {
  for (const [run, held] of stock.held) {
    if (held.waiting.length === 0) continue
    const claimed = { name: leaseOf(run), owner }
    const { taken } = await state.leases.take({ ...claimed, isClosed })
    if (taken) {
      await state.leases.release(claimed)
      continue
    }
    held.others.push(...held.waiting.map(({ row }) => row))
    held.waiting = []
  }
}

/** Takes them over: meanwhile the run that had them can't begin anew. */
export async function takeOverRows({
  state,
  plan,
  stock,
  owner,
  isClosed,
}: TakeOver & { plan: ImportPlan }): Promise<void> {
  const { ledger, leases } = state
  for (const [run, { waiting }] of stock.held) {
    if (waiting.length === 0) continue
    await takeLease({ leases, name: leaseOf(run), owner, isClosed })
    await takeOver({ ledger, rows: waiting.map(({ held }) => held), by: plan.run })
    await leases.release({ name: leaseOf(run), owner })
  }
}
