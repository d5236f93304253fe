import type { CallObserver } from '../core/billing/calls.ts'
import { createBilling, type Billing } from '../core/billing/client.ts'
import type { Permits } from '../core/billing/permits.ts'
import { SharedRate } from '../core/billing/shared-rate.ts'
import type { Settings } from './settings/settings.ts'

/**
 * The client of the configured service: one per process, because it enforces the rate. With `permits`, the rate and the
 * concurrency are those of all workers together.
 */
export function createService(
  { billing }: Settings,
  {
    onRequest,
    permits,
    mostPauseMs,
  }: { onRequest?: CallObserver; permits?: Permits | undefined; mostPauseMs?: number } = {},
): Billing {
  const { requestsPerSecond, ...rest } = billing
  const rate = { requestsPerSecond }
  const gate = permits && new SharedRate({ permits, share: rate, concurrency: rest.concurrency })
  return createBilling({ ...rest, rate, gate, mostPauseMs, ...(onRequest && { onRequest }) })
}

/** The client of a command, whose person waits: a pause of an hour must not look like a command that hangs. */
export const createCommandService = (settings: Settings): Billing =>
  createService(settings, { mostPauseMs: 10_000 })
