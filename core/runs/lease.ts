import type { LeaseOwner, Leases } from '../state/leases.ts'
import { Busy } from './errors.ts'

/**
 * Takes a lease, or refuses and names the active run that holds it; with `again`, any other run that has taken it since.
 *
 * @throws {Busy}
 */
export async function takeLease(options: {
  leases: Leases
  name: string
  owner: LeaseOwner
  isClosed: (owner: LeaseOwner) => Promise<boolean>
  again?: boolean | undefined
}): Promise<void> {
  const { again, ...lease } = options
  const result = await options.leases.take({ ...lease, again })
  if (result.taken) return
  const { workflowId } = result.heldBy
  throw new Busy(
    again === true
      ? `The run ${workflowId} has begun to do this (${options.name}) since, so what this run knows is out of date. Start a new one.`
      : `The run ${workflowId} is already doing this (${options.name}) and has not ended. Wait for it, or stop it.`,
  )
}
