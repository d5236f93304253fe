import type { CallObserver } from '../core/billing/calls.ts'
import { createBilling, type Billing } from '../core/billing/client.ts'
import { FleetRate, type RateStore } from '../core/billing/fleet-rate.ts'
import type { Settings } from './settings/settings.ts'

/**
 * The client of the configured service: one per process, because it enforces the rate. With `shares`, the rate and the
 * concurrency are those of all workers together.
 */
export function createService(
  { billing }: Settings,
  {
    onRequest,
    shares,
    mostPauseMs,
  }: { onRequest?: CallObserver; shares?: RateStore | undefined; mostPauseMs?: number } = {},
): Billing {
  const { requestsPerSecond, ...rest } = billing
  const fleet = shares && new FleetRate(shares)
  return createBilling({
    ...rest,
    rate: { requestsPerSecond },
    fleet,
    mostPauseMs,
    ...(onRequest && { onRequest }),
  })
}

/** The client of a command, whose person waits: a pause of an hour must not look like a command that hangs. */
export const createCommandService = (settings: Settings): Billing =>
  createService(settings, { mostPauseMs: 10_000 })
