import type { CallObserver } from '../core/billing/calls.ts'
import { createBilling, type Billing } from '../core/billing/client.ts'
import type { Settings } from './settings/settings.ts'

/** The client of the configured service: one per process, because it enforces the process-wide rate. */
export function createService(
  { billing }: Settings,
  { onRequest }: { onRequest?: CallObserver } = {},
): Billing {
  const { requestsPerSecond, ...rest } = billing
  return createBilling({ ...rest, rate: { requestsPerSecond }, ...(onRequest && { onRequest }) })
}
