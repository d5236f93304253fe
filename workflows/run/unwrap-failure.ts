import { ActivityFailure, ApplicationFailure, TemporalFailure } from '@temporalio/common'

/**
 * The failure of the step itself. Temporal wraps it in "Activity task failed", which its UI would show first and
 * which explains nothing.
 */
export function rootFailure(error: unknown): unknown {
  const cause = error instanceof ActivityFailure ? error.cause : undefined
  if (!(cause instanceof ApplicationFailure)) return error
  return withoutStack(ApplicationFailure.nonRetryable(cause.message, cause.type ?? 'Unexpected'))
}

/** A refusal is a sentence for a person: in the Temporal UI a stack would bury it. */
export function withoutStack<E extends Error>(error: E): E {
  error.stack = ''
  return error
}

export function throwRootFailure(error: unknown): never {
  throw rootFailure(error)
}

/**
 * Rethrows what is not a failure of Temporal's. Every catch-all calls it first: a run ends only by a TemporalFailure.
 * Anything else is a bug (a TypeError) or a continue-as-new and must leave the workflow without another command. A
 * bug then fails the workflow task, which Temporal retries until fixed code is deployed, and the run resumes.
 * @throws the error itself, unless it is a TemporalFailure
 */
export function rethrowBug(error: unknown): asserts error is TemporalFailure {
  if (!(error instanceof TemporalFailure)) throw error
}
