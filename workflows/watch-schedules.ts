import { proxyActivities, setCurrentDetails, workflowInfo, CancellationScope } from '@temporalio/workflow'
import type { WatchInput } from '../core/schedules/watch-input.ts'
import type { Missed } from '../core/schedules/slots.ts'
import type { WatchStep } from '../activities/schedules/find-missed.ts'
import type { Activities } from '../activities/index.ts'
import { opening } from './run/activity-options.ts'
import { createNotifier, scheduledBy } from './run/notify.ts'
import { controlRun, stoppedBefore } from './run/control.ts'
import { shell } from '../core/runs/view/shell.ts'
import { escapeMarkdown } from './run/markdown.ts'

const { findMissed } = proxyActivities<Activities>(opening)

export interface WatchReport extends Pick<WatchStep, 'until' | 'nights' | 'missed'> {
  /** One sentence; the first thing the Temporal UI shows of a result. */
  summary: string
}

/**
 * Notices the nights that did not happen: of every schedule that is to be proven in time, those whose time ended since
 * the last look without a proven export. Each is told once. Where this run's window begins and ends comes from its
 * schedule, so that a look that comes late, or is the first after an outage, leaves no night out.
 */
export async function watchSchedules(input?: WatchInput | null): Promise<WatchReport> {
  const { lastResult, startTime } = workflowInfo()
  const since = (lastResult as WatchReport | undefined)?.until
  const until = scheduledBy()?.scheduledFor ?? startTime.toISOString()
  const notifier = createNotifier()
  const control = controlRun({
    text: { between: 'two looks', kept: 'the next look covers the same time' },
    onChange: ({ paused }) => setCurrentDetails(paused ? 'The watch is **paused**.' : ''),
  })
  return CancellationScope.nonCancellable(async () => {
    const summaryOfStep = `nights due before ${until}`
    const step = await control.unlessStopped(() =>
      findMissed.executeWithOptions({ summary: summaryOfStep }, [{ input: input ?? {}, since, until }]),
    )
    if (step === undefined)
      throw stoppedBefore('Stopped before it had looked; the next look covers the same time.')
    notifier.allow(step)
    for (const missed of step.missed) await notifier.notify(toNotification(missed))
    const summary = `${step.missed.length} of ${step.nights} nights have no proven export in time`
    setCurrentDetails(
      [
        summary,
        ...step.missed.map(
          ({ schedule, at, says }) => `- ${escapeMarkdown(`${schedule} of ${at}: ${says}`)}`,
        ),
      ].join('\n'),
    )
    const { nights, missed } = step
    return { summary, until: step.until, nights, missed }
  }).catch(notifier.fail)
}

const toNotification = ({ schedule, at, by, says }: Missed) => ({
  kind: 'missed' as const,
  // The same night is the same event, whoever looks.
  id: `missed/${schedule}/${at}`,
  summary: `${schedule} of ${at} was to be proven by ${by}: ${says}.`,
  command: shell`connector schedule trigger ${schedule}`,
  report: { schedule, at, by, says },
})
