import {
  ApplicationFailure,
  CancellationScope,
  defineQuery,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import type { ResourceResult } from '../core/exports/report.ts'
import { toMarkdown } from '../core/runs/view/markdown.ts'
import type { Activities } from '../activities/index.ts'
import { allowHeartbeats } from './run/heartbeats.ts'
import { publishing, reading } from './run/activity-options.ts'
import type { Opened } from '../core/notifications/opened.ts'
import type { ExportPlan } from '../core/exports/plan.ts'
import type { SegmentResult } from '../core/exports/parts/checkpoint.ts'
import type { OpenRanges } from '../core/exports/parts/ranges/join-parts.ts'
import { type ResourceProgress, toResourceView } from './export-view.ts'
import { createSearchAttributes } from './run/search-attributes.ts'
import { toThroughput } from './run/throughput.ts'
import { publishEach } from './run/publish-each.ts'
import { refOf } from './run/run-ref.ts'
import { controlRun, type RunControl } from './run/control.ts'
import { showTroubles } from './run/troubles.ts'
import { readRanges } from './run/read-ranges.ts'

type Resource = ExportPlan['resources'][number]

const { readSegment, readRange } = proxyActivities<Activities>(reading)

const { publishExport } = proxyActivities<Activities>(publishing)

const firstSegmentSeconds = 15
const longestSegmentSeconds = 600

const status = defineQuery<ResourceProgress>('status')

/**
 * Reads one resource and publishes it. The read runs in segments of growing length (15 s, doubling to ten minutes),
 * so that progress shows early and 10,000 pages still produce only tens of events.
 */
export async function exportResource(input: {
  plan: Opened<ExportPlan>
  resource: Resource
}): Promise<ResourceResult> {
  const { parent } = workflowInfo()
  if (parent === undefined) {
    const message =
      'exportResource is the part of an export that reads one list: start exportData instead, with {"resources": ["customers"]}.'
    throw ApplicationFailure.nonRetryable(message, 'InvalidInput')
  }
  const { plan, resource } = input
  const owner = { workflowId: parent.workflowId, runId: parent.runId }
  const progress: ResourceProgress = { phase: 'reading', resource, records: 0, requests: 0 }
  const show = (change: Partial<ResourceProgress>) => {
    Object.assign(progress, change)
    setCurrentDetails(toMarkdown(toResourceView(progress)))
  }
  let step: 'reading' | 'publishing' = 'reading'
  const control = controlRun({
    text: { between: 'two pages, or before it publishes', kept: 'what was read is kept' },
    onChange: (now) => show({ phase: now.stopping ? 'stopped' : now.paused ? 'paused' : step }),
  })
  showTroubles(progress, () => show({}))
  const attributes = createSearchAttributes()
  attributes.allow(plan)
  allowHeartbeats(plan)
  attributes.set({ resources: [resource] })
  setHandler(status, () => progress, {
    description: 'The progress of this read: phase, records, requests, verdict.',
  })

  return CancellationScope.nonCancellable(async () => {
    let seconds = firstSegmentSeconds
    let read: SegmentResult | undefined
    for (let segment = 1; read?.verdict === undefined; segment += 1) {
      await control.mayContinue()
      if (control.stopping) return { resource, stopped: true }
      show({ phase: 'reading' })
      const begun = Date.now()
      const part = await control.untilInterrupted(() =>
        readSegment.executeWithOptions({ summary: `read ${resource}, part ${segment}` }, [
          { ...refOf(plan), resource, seconds, owner },
        ]),
      )
      if (part === 'interrupted') continue
      if ('ranges' in part) {
        await readDividedList({ plan, resource, owner, open: part, control, show })
        continue
      }
      const now = Date.now()
      const { records, expected = 0 } = part
      const done = records - progress.records
      const throughput = toThroughput({ done, left: expected - records, ms: now - begun, now })
      read = part
      seconds = Math.min(seconds * 2, longestSegmentSeconds)
      show({
        throughput,
        records,
        requests: read.requests,
        workers: read.workers,
        ...(read.expected === undefined ? {} : { expected: read.expected }),
      })
    }

    step = 'publishing'
    show({ phase: control.paused ? 'paused' : step, verdict: read.verdict })
    const { checkpoint } = read
    const result = await publishEach({
      resource,
      to: plan.to,
      publish: (destination) =>
        control.unlessStopped(() =>
          publishExport.executeWithOptions({ summary: `publish ${resource} to ${destination}` }, [
            { ...refOf(plan), resource, destination, checkpoint, owner },
          ]),
        ),
    })
    const first = 'published' in result ? result.published[0] : undefined
    show({
      phase: 'stopped' in result ? 'stopped' : 'ended',
      ...(first === undefined ? {} : { verdict: first.verdict, reasons: first.reasons }),
    })
    attributes.set({ verdict: first?.verdict ?? ('stopped' in result ? 'stopped' : 'failed') })
    return result
  })
}

/** Reads the ranges of a long list, several at once, and shows their progress together. */
async function readDividedList(options: {
  plan: Opened<ExportPlan>
  resource: Resource
  owner: { workflowId: string; runId: string }
  open: OpenRanges
  control: RunControl
  show: (change: Partial<ResourceProgress>) => void
}): Promise<void> {
  const { plan, resource, owner, open, control, show } = options
  const { ranges, records: before, expected } = open
  const begun = Date.now()
  const progress = (all: Pick<ResourceProgress, 'records' | 'requests' | 'workers'>) => {
    const now = Date.now()
    const work = { done: all.records - before, left: (expected ?? 0) - all.records, ms: now - begun, now }
    show({
      phase: 'reading',
      ...all,
      throughput: toThroughput(work),
      ...(expected !== undefined && { expected }),
    })
  }
  progress({ records: before, requests: open.requests })
  await readRanges({
    open,
    parallel: plan.parallel ?? 1,
    control,
    readRange: ({ range, part, seconds }) =>
      readRange.executeWithOptions(
        {
          summary: `read ${resource}, range ${range + 1} of ${ranges}, part ${part}`,
          taskQueue: plan.rangeQueue,
        },
        [{ ...refOf(plan), resource, range, seconds, owner }],
      ),
    onProgress: progress,
  })
}
