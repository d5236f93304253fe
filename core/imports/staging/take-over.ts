import { takeOver } from '../../changes/send/release-rows.ts'
import { takeLease } from '../../runs/lease.ts'
import type { LeaseOwner } from '../../state/leases.ts'
import type { State } from '../../state/open.ts'
import { type ImportPlan, leaseOf } from '../input.ts'
import type { LedgerMatches } from './match-ledger.ts'

/** What is needed to take over rows of other imports. */
export interface TakeOverDeps {
  state: Pick<State, 'ledger' | 'leases'>
  owner: LeaseOwner
  /** Whether another run has ended, from the point of view of this one. */
  isClosed: (owner: LeaseOwner) => Promise<boolean>
}

type TakeOver = TakeOverDeps & { matches: LedgerMatches }

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
