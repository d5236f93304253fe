import { TemporalFailure } from '@temporalio/common'

/**
 * Passes on what is no failure of Temporal's. Every catch-all calls it first: a run ends only by a TemporalFailure.
 * Anything else is a bug (a TypeError) or a continue-as-new and must leave the workflow without another command. A
 * bug then fails the workflow task, which Temporal retries until fixed code is deployed, and the run resumes.
 * @throws the error itself, unless it is a TemporalFailure
 */
export function onlyFailures(error: unknown): asserts error is TemporalFailure {
  if (!(error instanceof TemporalFailure)) throw error
}
