import type { ScheduleDescription, ScheduleOptions, ScheduleOptionsAction } from '@temporalio/client'
import { madeBy, scheduleMemoOf, type ScheduleMemo } from '../../core/schedules/memo.ts'
import { hashInput } from '../runs/attach.ts'
import { toMs, type Definition } from './definition.ts'

interface Named {
  name: string
  definition: Definition
  taskQueue: string
}

/** Converts a schedule for Temporal, without its paused state. */
export function toTemporal({ name, definition, taskQueue }: Named) {
  const { workflow, input, cron, every, timezone, jitter, catchUp, pauseAfterFailures } = definition
  const { provenWithin, paused } = definition
  const schedule: ScheduleMemo = {
    pauseAfterFailures,
    // A schedule that only a person starts has no slot to miss.
    ...(provenWithin !== undefined && !paused && { provenWithinMs: toMs(provenWithin) }),
    definition: { ...definition },
  }
  return {
    spec: {
      ...(cron !== undefined && { cronExpressions: cron }),
      ...(every !== undefined && { intervals: [{ every: toMs(every) }] }),
      ...(jitter !== undefined && { jitter: toMs(jitter) }),
      timezone,
    },
    action: {
      type: 'startWorkflow',
      workflowType: workflow,
      // Temporal appends the scheduled time.
      workflowId: name,
      taskQueue,
      args: [input],
      memo: { schedule },
    } satisfies ScheduleOptionsAction,
    // A single failure must not stop a schedule: runs pause it themselves after several.
    policies: { overlap: 'SKIP', catchupWindow: toMs(catchUp), pauseOnFailure: false },
  } as const satisfies Omit<ScheduleOptions, 'scheduleId'>
}

export const ownerMemo = ({ taskQueue }: { taskQueue: string }) => ({ madeBy, taskQueue })

/**
 * A hash of the requested definition and of what Temporal stores for it. It changes with everything that a person
 * can change in the Temporal UI, except a pause; the schedule's memo holds the hash after the last `apply`.
 */
export function fingerprint({ description, ...named }: Named & { description: ScheduleDescription }): string {
  const { spec, action, policies, state } = description
  const { fingerprint: _, earlier: __, ...memo } = scheduleMemoOf(action)
  const kept = { spec, action: { ...action, memo }, policies, remainingActions: state.remainingActions }
  return hashInput({ wanted: toTemporal(named), kept })
}
