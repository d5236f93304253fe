import { ActivityFailure, ApplicationFailure } from '@temporalio/workflow'

/**
 * The failure in the words of the step that failed: what Temporal wraps around them ("Activity task failed") is what
 * its UI would show first, and says nothing.
 */
export function inOwnWords(error: unknown): unknown {
  const cause = error instanceof ActivityFailure ? error.cause : undefined
  if (!(cause instanceof ApplicationFailure)) return error
  return ApplicationFailure.nonRetryable(cause.message, cause.type ?? 'Unexpected')
}

/** Fails the run in the words of the step that failed. */
export function throwInOwnWords(error: unknown): never {
  throw inOwnWords(error)
}
