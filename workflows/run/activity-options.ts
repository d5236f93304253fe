import type { ActivityOptions } from '@temporalio/workflow'

// Every timeout and retry policy of the workflows. A refusal (`retryable: false`) is never retried, whatever the policy.

/** Bridges some minutes without the service or the disk: a step that starts or ends a run is cheap to repeat. */
const briefRetry = { initialInterval: '2s', maximumInterval: '1 minute', maximumAttempts: 15 } as const

/** Bridges about half an hour: each attempt resumes from the last checkpoint, so attempts cost little. */
const longRetry = { initialInterval: '1s', maximumInterval: '1 minute', maximumAttempts: 40 } as const

/** A stopped run waits for its step to end: the report must cover what the step still does. */
const awaited = { cancellationType: 'WAIT_CANCELLATION_COMPLETED' } as const

/** After a SIGKILL of the worker, the step is retried in under 7 s; a stop reaches it within 2 s. */
const live = { heartbeatTimeout: '5s' } as const

/** Before reads and publications (3, the default), where workers have more to do than they can do at once. */
const first = { priority: { priorityKey: 1 } } as const

/** Checks the input and the service. Ten minutes, because a step waits up to five for a new token. */
export const opening: ActivityOptions = {
  ...awaited,
  ...live,
  startToCloseTimeout: '10 minutes',
  retry: briefRetry,
}

/** Also reads a file of up to 100,000 ids. */
export const openingFetch: ActivityOptions = { ...opening, startToCloseTimeout: '15 minutes' }

/** Uses the long retry, because a write run started by a person should survive a longer outage. */
export const openingWrite: ActivityOptions = { ...opening, retry: longRetry }

/** One segment of a read, ten minutes at most. */
export const reading: ActivityOptions = {
  ...awaited,
  ...live,
  startToCloseTimeout: '15 minutes',
  retry: longRetry,
}

/** The heartbeat timeout is 30 s: a database may hold a transaction of millions of rows that long. */
export const publishing: ActivityOptions = {
  ...awaited,
  heartbeatTimeout: '30s',
  startToCloseTimeout: '6 hours',
  retry: longRetry,
}

/** Nothing has been read that a failure could waste, so it gives up sooner. */
export const republishing: ActivityOptions = { ...publishing, retry: briefRetry }

/** Reads the parts of some lists, and looks up what they lack. The export continues without it. */
export const checkingReferences: ActivityOptions = {
  ...awaited,
  heartbeatTimeout: '30s',
  startToCloseTimeout: '1 hour',
  retry: briefRetry,
}

/** Writes the report of an export. */
export const closing: ActivityOptions = { ...live, startToCloseTimeout: '5 minutes', retry: briefRetry }

/** Reads a whole file or a whole list of the service, to stage, audit or write the report of a write run. */
export const wholeRun: ActivityOptions = {
  ...awaited,
  ...live,
  startToCloseTimeout: '6 hours',
  retry: longRetry,
}

/**
 * One segment of sending. Cancellation waits for the requests in flight: a report written before their answers
 * would call them unknown. Retries are unlimited: an attempt resumes from the ledger, so it costs little and harms
 * nothing, and an error that retrying cannot fix is marked non-retryable. The waits grow slowly: a worker that is
 * killed five times in a segment must not cost the run half a minute, and the sender itself waits for a service
 * that is down.
 */
export const sending: ActivityOptions = {
  ...awaited,
  ...live,
  ...first,
  startToCloseTimeout: '15 minutes',
  retry: { initialInterval: '1s', backoffCoefficient: 1.2, maximumInterval: '30s' },
}

/** Closes changes in the ledger that the run does not send. */
export const skipping: ActivityOptions = {
  ...live,
  startToCloseTimeout: '5 minutes',
  retry: { initialInterval: '1s', maximumInterval: '30s', maximumAttempts: 20 },
}

/** A person waits for the answer. Rows that are said to be absent are looked up one after the other. */
export const operating: ActivityOptions = {
  ...live,
  ...first,
  startToCloseTimeout: '5 minutes',
  retry: { initialInterval: '1s', maximumInterval: '10s', maximumAttempts: 5 },
}

/** Best effort: the run has already failed and ends either way. */
export const pausing: ActivityOptions = {
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '5 minutes',
  retry: { initialInterval: '1s', maximumInterval: '30s' },
}

/**
 * After a day without a channel that accepts it, a notification is no longer useful. The heartbeat timeout covers a
 * worker that is killed, and an attempt that Temporal gives to a worker that has just stopped: nobody runs it.
 */
export const notifying: ActivityOptions = {
  heartbeatTimeout: '15s',
  startToCloseTimeout: '2 minutes',
  scheduleToCloseTimeout: '24 hours',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5 minutes' },
}
