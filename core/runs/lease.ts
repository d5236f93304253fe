import type { LeaseOwner, Leases } from '../state/leases.ts'
import { Busy } from './errors.ts'

/**
 * Takes a lease, or refuses and names the active run that holds it.
 *
 * @throws {Busy}
 */
export async function takeLease(options: {
  leases: Leases
  name: string
  owner: LeaseOwner
  isClosed: (owner: LeaseOwner) => Promise<boolean>
}): Promise<void> {
  const { leases, name, owner, isClosed } = options
  const result = await leases.take({ name, owner, isClosed })
  if (result.taken) return
  throw new Busy(
    `The run ${result.heldBy.workflowId} is already doing this (${name}) and has not ended. Wait for it, or stop it.`,
  )
}
