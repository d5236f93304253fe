import type { WorkflowExecutionDescription } from '@temporalio/client'
import { defaultPayloadConverter } from '@temporalio/common'

type Described = Pick<WorkflowExecutionDescription, 'raw'>

/** The details of the last heartbeat of each of a run's current steps; empty before the first. */
export function heartbeatsOf<Details extends object>({ raw }: Described): Partial<Details>[] {
  return (raw.pendingActivities ?? []).map(({ heartbeatDetails }) => {
    const payload = heartbeatDetails?.payloads?.[0]
    try {
      // A step that has nothing to report yet heartbeats without details.
      return (payload && defaultPayloadConverter.fromPayload<Details | undefined>(payload)) ?? {}
    } catch {
      // Encrypted.
      return {}
    }
  })
}

/** The details of a run's first current step. */
export const heartbeatOf = <Details extends object>(described: Described): Partial<Details> =>
  heartbeatsOf<Details>(described)[0] ?? {}
