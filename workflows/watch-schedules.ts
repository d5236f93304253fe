import { proxyActivities, setCurrentDetails, workflowInfo, CancellationScope } from '@temporalio/workflow'
import type { WatchInput } from '../core/schedules/inputs.ts'
import type { MissedSlot } from '../core/schedules/slots.ts'
import type { WatchStep } from '../activities/schedules/find-missed.ts'
import type { Activities } from '../activities/index.ts'
import { opening } from './run/activity-options.ts'
import { createNotifier, scheduledBy } from './run/notify.ts'
import { controlRun, stoppedBefore } from './run/control.ts'
import { connector } from '../core/runs/view/shell.ts'
import { escapeMarkdown } from '../core/runs/view/markdown.ts'

const { findMissed } = proxyActivities<Activities>(opening)

export interface WatchReport extends Pick<WatchStep, 'until' | 'slots' | 'missed'> {
  /** One sentence; the first thing the Temporal UI shows of a result. */
  summary: string
}

/**
 * Reports missed slots: those of every schedule with `provenWithin` whose deadline has passed since the last check
 * without a proven export. Each is reported once. The watch's own schedule defines the window of a check, so that a
 * late check, or the first after an outage, covers every slot.
 */
export async function watchSchedules(input?: WatchInput | null): Promise<WatchReport> {
  const { lastResult, startTime } = workflowInfo()
  const since = (lastResult as WatchReport | undefined)?.until
  const until = scheduledBy()?.scheduledFor ?? startTime.toISOString()
  const notifier = createNotifier()
  const control = controlRun({
    text: { between: 'two checks', kept: 'the next check covers the same time' },
    onChange: ({ paused }) => setCurrentDetails(paused ? 'The watch is **paused**.' : ''),
  })
  return CancellationScope.nonCancellable(async () => {
    const summaryOfStep = `slots due before ${until}`
    const step = await control.unlessStopped(() =>
      findMissed.executeWithOptions({ summary: summaryOfStep }, [{ input: input ?? {}, since, until }]),
    )
    if (step === undefined)
      throw stoppedBefore('Stopped before its check; the next one covers the same time.')
    notifier.allow(step)
    for (const missed of step.missed) await notifier.notify(toNotification(missed))
    const summary =
      step.slots === 0
        ? 'no slot was due'
        : `${step.missed.length} of ${step.slots} slots have no proven export in time`
    setCurrentDetails(
      [
        summary,
        ...step.missed.map(
          ({ schedule, at, reason }) => `- ${escapeMarkdown(`${schedule} of ${at}: ${reason}`)}`,
        ),
      ].join('\n'),
    )
    const { slots, missed } = step
    return { summary, until: step.until, slots, missed }
  }).catch(notifier.fail)
}

const toNotification = ({ schedule, at, by, reason }: MissedSlot) => ({
  kind: 'missed' as const,
  // The id depends on the slot only, so that the same slot is the same event whichever check finds it.
  id: `missed/${schedule}/${at}`,
  summary: `${schedule} of ${at} was due to be proven by ${by}: ${reason}.`,
  command: connector`schedule trigger ${schedule}`,
  report: { schedule, at, by, reason },
})
