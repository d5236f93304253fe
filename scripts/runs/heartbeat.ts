import type { WorkflowExecutionDescription } from '@temporalio/client'
import { defaultPayloadConverter } from '@temporalio/common'

/** The details of the last heartbeat of a run's current step; empty before the first. */
export function heartbeatOf<Details extends object>({
  raw,
}: Pick<WorkflowExecutionDescription, 'raw'>): Partial<Details> {
  const payload = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads?.[0]
  // A step that has nothing to report yet heartbeats without details.
  return (payload && defaultPayloadConverter.fromPayload<Details | undefined>(payload)) ?? {}
}
