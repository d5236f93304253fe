import { takeOver } from '../../changes/send/release-rows.ts'
import { takeLease } from '../../runs/lease.ts'
import { type ImportGapDeps, leaseOf, learnClaims } from '../restored-ledger.ts'
import type { ImportPlan } from '../input.ts'
import type { LedgerMatches } from './match-ledger.ts'

type TakeOver = ImportGapDeps & { matches: LedgerMatches }

/**
 * Marks rows that other runs have sent but that the ledger, restored from a backup, shows as unsent; returns
 * whether there were any.
 */
export async function learnSentRows({ matches, ...deps }: TakeOver): Promise<boolean> {
  let learned = 0
  for (const [run, { unsent }] of matches.held)
    if (unsent.length > 0) learned += await learnClaims({ ...deps, run })
  return learned > 0
}

/**
 * Unsent rows of an active run stay with it. Those of an ended run may be sent by another one: this is how a
 * fixed file replaces one that was stopped.
 */
export async function keepActiveRuns({ state, matches, owner, isClosed }: TakeOver): Promise<void> {
  for (const [run, held] of matches.held) {
    if (held.unsent.length === 0) continue
    const lease = { name: leaseOf(run), owner }
    const { taken } = await state.leases.take({ ...lease, isClosed })
    if (taken) {
      await state.leases.release(lease)
      continue
    }
    held.active.push(...held.unsent.map(({ row }) => row))
    held.unsent = []
  }
}

/** Takes over other runs' unsent rows. The lease keeps such a run from starting again meanwhile. */
export async function takeOverRows({
  state,
  plan,
  matches,
  owner,
  isClosed,
}: TakeOver & { plan: ImportPlan }): Promise<void> {
  const { ledger, leases } = state
  for (const [run, { unsent }] of matches.held) {
    if (unsent.length === 0) continue
    await takeLease({ leases, name: leaseOf(run), owner, isClosed })
    await takeOver({ ledger, rows: unsent.map(({ change }) => change), by: plan.run })
    await leases.release({ name: leaseOf(run), owner })
  }
}
