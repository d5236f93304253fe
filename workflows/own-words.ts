import { ActivityFailure, ApplicationFailure } from '@temporalio/workflow'

/**
 * Fails the run in the words of the step that failed: what Temporal wraps around them ("Activity task failed") is
 * what its UI would show first, and says nothing.
 */
export function throwInOwnWords(error: unknown): never {
  const cause = error instanceof ActivityFailure ? error.cause : undefined
  if (!(cause instanceof ApplicationFailure)) throw error
  throw ApplicationFailure.nonRetryable(cause.message, cause.type ?? 'Unexpected')
}
