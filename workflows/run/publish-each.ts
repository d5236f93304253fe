import { rootCause } from '@temporalio/workflow'
import type { PublishFailure, ResourceResult, PublishedExport } from '../../core/exports/report.ts'
import type { ExportPlan } from '../../core/exports/plan.ts'
import { rethrowBug } from '../run/unwrap-failure.ts'

/**
 * Publishes a finished read to each of its destinations. A destination that fails does not affect the others: every
 * result is awaited and reported.
 */
export async function publishEach(options: {
  resource: ExportPlan['resources'][number]
  to: ExportPlan['to']
  /** Undefined if the run was stopped first. */
  publish: (destination: ExportPlan['to'][number]) => Promise<PublishedExport | undefined>
}): Promise<ResourceResult> {
  const { resource, to, publish } = options
  const published: PublishedExport[] = []
  const failed: PublishFailure[] = []
  const unpublished: ExportPlan['to'] = []
  const outcomes = await Promise.all(
    to.map((destination) =>
      publish(destination).catch((error: unknown): PublishFailure => {
        rethrowBug(error)
        return { destination, error: rootCause(error) ?? String(error) }
      }),
    ),
  )
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome === undefined) unpublished.push(to[at]!)
    else if ('error' in outcome) failed.push(outcome)
    else published.push(outcome)
  }
  if (unpublished.length === to.length) return { resource, stopped: true }
  if (published.length > 0)
    return {
      resource,
      published,
      ...(failed.length > 0 && { failed }),
      ...(unpublished.length > 0 && { unpublished }),
    }
  // Destinations that failed with the same message are reported once.
  return { resource, error: [...new Set(failed.map(({ error }) => error))].join(' ') }
}
