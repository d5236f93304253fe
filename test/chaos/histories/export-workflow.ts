import type { SegmentResult } from '../../../core/exports/parts/checkpoint.ts'
import type { OpenRanges } from '../../../core/exports/parts/ranges/join-parts.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import type { ExportReport, PublishedExport, ResourceResult } from '../../../core/exports/report.ts'
import { type Run, StepFailed } from './run.ts'

type Resource = ExportPlan['resources'][number]

/**
 * The steps of exportData and of its children in their order, one list after the other. Undefined where it was stopped
 * before it began.
 *
 * @throws {StepFailed}
 */
export async function exportLists(
  run: Run,
  { input, seconds }: { input: ExportInput; seconds: number },
): Promise<ExportReport | undefined> {
  const plan = await run.untilStopped('openExport', input)
  if (plan === undefined) return undefined
  const results: ResourceResult[] = []
  for (const resource of plan.resources) results.push(await exportOne(run, { plan, resource, seconds }))
  const closed = await run.toTheEnd('closeExport', { ...refOf(plan), results })
  return closed.report
}

/** One range after the other; false where it was stopped. */
async function readRanges(
  run: Run,
  { step, seconds, open }: { step: object; seconds: number; open: OpenRanges },
): Promise<boolean> {
  for (const { range } of open.left) {
    let ended: string | undefined
    while (ended === undefined) {
      const read = await run.untilStopped('readRange', { ...step, range, seconds, owner: run.execution })
      if (read === undefined) return false
      ended = read.ended
    }
    if (ended !== 'whole') return true
  }
  return true
}

const refOf = ({ run, identity }: ExportPlan) => ({ run, identity })

async function exportOne(
  run: Run,
  { plan, resource, seconds }: { plan: ExportPlan; resource: Resource; seconds: number },
): Promise<ResourceResult> {
  const step = { ...refOf(plan), resource }
  const stopped = { resource, stopped: true } as const
  try {
    let read: SegmentResult | undefined
    while (read?.verdict === undefined) {
      const next = await run.untilStopped('readSegment', { ...step, seconds, owner: run.execution })
      if (next === undefined) return stopped
      if (!('ranges' in next)) read = next
      else if (!(await readRanges(run, { step, seconds, open: next }))) return stopped
    }
    const published: PublishedExport[] = []
    for (const destination of plan.to) {
      const { checkpoint } = read
      const publish = { ...step, destination, checkpoint, owner: run.execution }
      const one = await run.untilStopped('publishExport', publish)
      if (one !== undefined) published.push(one)
    }
    return published.length === 0 ? stopped : { resource, published }
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error
    return { resource, error: error.message }
  }
}
