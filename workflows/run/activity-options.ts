import type { ActivityOptions } from '@temporalio/workflow'

/** How a segment that sends changes is waited for and tried again. */
export const sendingPatience: ActivityOptions = {
  startToCloseTimeout: '15 minutes',
  // 5 s: after a SIGKILL of the worker the run goes on in under 7 s, and a stop is heard within a second or two.
  heartbeatTimeout: '5s',
  // What is on its way is awaited: a report that came before it would call it unknown.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  // Without an end: a try begins where the ledger stands, so it costs little and harms nothing, and what should
  // not be tried again says so itself. Why it waits is shown under Pending Activities.
  // The waits grow slowly: a worker that is killed five times in a segment must not cost the run half a minute, and
  // a service that is away is waited for by the sender itself.
  retry: { initialInterval: '1s', backoffCoefficient: 1.2, maximumInterval: '30s' },
}
