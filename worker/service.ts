import type { Logger } from '@temporalio/worker'
import type { ActivityDeps } from '../activities/deps.ts'
import type { CallObserver } from '../core/billing/calls.ts'
import { createBilling, type Billing } from '../core/billing/client.ts'
import { Unauthorized } from '../core/billing/errors.ts'
import { FleetRate, type RateStore } from '../core/billing/fleet-rate.ts'
import { TokenFileError, type Token } from './settings/rotating.ts'
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

/** Long enough, in ms, to rotate a token in the service first and in its file afterwards. */
const limitMs = 5 * 60_000

/** Waits for a new token (`ActivityDeps.awaitToken`); undefined if the token is not from a file. */
export function createTokenWait(options: { token: Token; logger: Logger }): ActivityDeps['awaitToken'] {
  const { token, logger } = options
  const { replaced } = token
  if (replaced === undefined) return undefined
  return async (error, { signal, withinMs, onWait }) => {
    if (!(error instanceof Unauthorized || error instanceof TokenFileError)) return false
    const ms = Math.min(limitMs, withinMs)
    logger.warn('waiting for a new token in its file', { error: error.message, upToSeconds: ms / 1000 })
    onWait(Date.now() + ms)
    try {
      await replaced(AbortSignal.any([signal, AbortSignal.timeout(ms)]))
      return true
    } catch {
      signal.throwIfAborted()
      return false
    }
  }
}
