import { ActivityFailure, ApplicationFailure, TemporalFailure } from '@temporalio/common'

/**
 * The failure of the step itself. Temporal wraps it in "Activity task failed", which its UI would show first
 * although it explains nothing.
 */
export function rootFailure(error: unknown): unknown {
  const cause = error instanceof ActivityFailure ? error.cause : undefined
  if (!(cause instanceof ApplicationFailure)) return error
  return withoutStack(ApplicationFailure.nonRetryable(cause.message, cause.type ?? 'Unexpected'))
}

/** Removes the stack: a refusal is a sentence for a person, and the Temporal UI would bury it under the stack. */
export function withoutStack<E extends Error>(error: E): E {
  error.stack = ''
  return error
}

export function throwRootFailure(error: unknown): never {
  throw rootFailure(error)
}

/**
 * Rethrows anything that is not a TemporalFailure. Every catch-all calls it first, because only a TemporalFailure
 * may end a run. Anything else is a bug (a TypeError) or a continue-as-new and must leave the workflow without
 * another command. A bug then fails the workflow task, which Temporal retries until fixed code is deployed, and the
 * run resumes.
 *
 * @throws the error itself, unless it is a TemporalFailure
 */
export function rethrowBug(error: unknown): asserts error is TemporalFailure {
  if (!(error instanceof TemporalFailure)) throw error
}
