import type { ClaimOwner, Claims } from '../state/leases.ts'
import { Busy } from './errors.ts'

/**
 * Takes a lease, or refuses with the run that holds it and has not ended.
 *
 * @throws {Busy}
 */
export async function takeLease(options: {
  claims: Claims
  what: string
  owner: ClaimOwner
  isClosed: (owner: ClaimOwner) => Promise<boolean>
}): Promise<void> {
  const { claims, what, owner, isClosed } = options
  const result = await claims.take({ what, owner, isClosed })
  if (result.taken) return
  throw new Busy(
    `The run ${result.heldBy.workflowId} is doing this already (${what}) and has not ended. Wait for it, or stop it.`,
  )
}
