import type { CallObserver } from '../billing/calls.ts'
import { createBilling, type Billing } from '../billing/client.ts'
import type { Settings } from './settings.ts'

/** The client of the service that the settings name: one a process, because it holds the process's rate. */
export function createService(
  { billing }: Settings,
  { onRequest }: { onRequest?: CallObserver } = {},
): Billing {
  const { requestsPerSecond, ...rest } = billing
  return createBilling({ ...rest, rate: { requestsPerSecond }, ...(onRequest && { onRequest }) })
}
