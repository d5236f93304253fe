import type { ScheduleDescription, ScheduleOptions, ScheduleOptionsAction } from '@temporalio/client'
import { madeBy, type ScheduleMemo } from '../../core/schedules/memo.ts'
import { expandCron, inOrder, numbersOf } from './cron.ts'
import { toMs, type Definition } from './definition.ts'

interface Named {
  name: string
  definition: Definition
  taskQueue: string
}

/** What Temporal is asked to keep, but for whether it is paused. */
export function toTemporal({ name, definition, taskQueue }: Named) {
  const { workflow, input, cron, every, timezone, jitter, catchUp, pauseAfterFailures } = definition
  const { provenWithin, paused } = definition
  const schedule: ScheduleMemo = {
    pauseAfterFailures,
    // What only a person starts has no night to miss.
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
      // Temporal puts the scheduled time behind it.
      workflowId: name,
      taskQueue,
      args: [input],
      memo: { schedule },
    } satisfies ScheduleOptionsAction,
    // Pausing after one failure would stop a schedule for one bad night; runs do it themselves after several.
    policies: { overlap: 'SKIP', catchupWindow: toMs(catchUp), pauseOnFailure: false },
  } as const satisfies Omit<ScheduleOptions, 'scheduleId'>
}

export const ownerMemo = ({ taskQueue }: { taskQueue: string }) => ({ madeBy, taskQueue })

/**
 * What a schedule does, in one form whether it is wanted or there: somebody may have changed it in the Temporal UI,
 * where its times are kept in another form than the file's.
 */
export interface Effect {
  times: unknown
  timezone: string
  jitterMs: number
  starts: unknown
  policies: unknown
  /** What no file asks for: an end, days that are left out, only so many runs, time-outs. */
  bounds: unknown
}

export function wantedEffect(named: Named): Effect {
  const { spec, action, policies } = toTemporal(named)
  const { cron = [], every } = named.definition
  const { workflowType, workflowId, taskQueue, args, memo } = action
  return toPlain({
    times: {
      calendars: cron.map((text) => [[0], ...expandCron(text)]).map(toText),
      intervals: every === undefined ? [] : [[toMs(every), 0]],
    },
    timezone: spec.timezone,
    jitterMs: spec.jitter ?? 0,
    starts: {
      workflowType,
      workflowId,
      taskQueue,
      args,
      watch: memo.schedule.provenWithinMs,
      most: memo.schedule.pauseAfterFailures,
    },
    policies,
    bounds: {},
  })
}

export function presentEffect(description: ScheduleDescription, memo: ScheduleMemo): Effect {
  const { spec, action, policies } = description
  const { workflowType, workflowId, taskQueue, args = [] } = action
  return toPlain({
    times: {
      calendars: (spec.calendars ?? []).map(toFields).map(toText),
      intervals: (spec.intervals ?? []).map(({ every, offset }) => [every, offset]),
    },
    timezone: spec.timezone ?? '',
    jitterMs: spec.jitter ?? 0,
    starts: {
      workflowType,
      workflowId,
      taskQueue,
      args,
      watch: memo.provenWithinMs,
      most: memo.pauseAfterFailures,
    },
    policies,
    bounds: boundsOf(description),
  })
}

function boundsOf({ spec, action, state }: ScheduleDescription): object {
  const { startAt, endAt, skip = [] } = spec
  const { workflowExecutionTimeout, workflowRunTimeout, workflowTaskTimeout } = action
  const { remainingActions } = state
  const timeouts = { workflowExecutionTimeout, workflowRunTimeout, workflowTaskTimeout }
  const bounds = { startAt, endAt, ...(skip.length > 0 && { skip }), remainingActions, ...timeouts }
  return Object.fromEntries(Object.entries(bounds).filter(([, bound]) => bound !== undefined && bound !== 0))
}

type Calendar = NonNullable<ScheduleDescription['spec']['calendars']>[number]
type Spans = readonly { start: number | string; end: number | string; step: number }[]

const months = 'JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER'.split(
  ' ',
)
const days = 'SUNDAY MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY'.split(' ')

function toFields({ second, minute, hour, dayOfMonth, month, dayOfWeek, year }: Calendar): number[][] {
  const fields: Spans[] = [
    second,
    minute,
    hour,
    dayOfMonth,
    month,
    dayOfWeek,
    ...(year.length > 0 ? [year] : []),
  ]
  return fields.map((spans) =>
    inOrder(
      spans.flatMap(({ start, end, step }) =>
        numbersOf({ from: toNumber(start), to: toNumber(end), step: Math.max(1, step) }),
      ),
    ),
  )
}

function toNumber(value: number | string): number {
  if (typeof value === 'number') return value
  const month = months.indexOf(value)
  return month >= 0 ? month + 1 : days.indexOf(value)
}

const toText = (fields: readonly (readonly number[])[]): string =>
  fields.map((field) => field.join(',')).join(' ')

/** Without what JSON leaves out, and with calendars in one order. */
function toPlain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}
