import type { Logger } from '@temporalio/worker'
import type { ActivityDeps } from '../activities/deps.ts'
import { Unauthorized } from '../core/billing/errors.ts'
import { TokenFileError, type Token } from './settings/token.ts'

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
