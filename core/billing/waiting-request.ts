import type { Permit, PermitRequest } from './permits.ts'
import type { Spacing } from './rate-limit.ts'

/** A request that waits for a permit of the shared rate. */
export interface Waiting {
  write: boolean
  run: string | undefined
  spacings: readonly Spacing[]
  /** It has a connection already, and a permit that became void. */
  isUrgent: boolean
  since: number
  grant(permit: Permit): void
  fail(error: unknown): void
}

/** Those with a connection first, then writes, then reads. */
export const rankOf = ({ isUrgent, write }: Waiting): number => (isUrgent ? 0 : 2) + (write ? 0 : 1)

/** The least of a run's own rates; undefined if it has none. */
export function runOf(spacings: readonly Spacing[]): PermitRequest['run'] {
  const shares = spacings.map(({ share }) => share)
  const rates = shares.map(({ requestsPerSecond }) => requestsPerSecond)
  const requestsPerSecond = Math.min(...rates)
  const name = shares.find(({ run }) => run !== undefined)?.run
  if (name === undefined || requestsPerSecond === Number.POSITIVE_INFINITY) return undefined
  return { name, requestsPerSecond }
}
