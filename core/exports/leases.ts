import type { ExportPlan } from './plan.ts'

/** What of a run only one run at a time may do. */
export const leasesOf = (plan: Pick<ExportPlan, 'resources' | 'to'>): string[] =>
  plan.resources.flatMap((resource) => plan.to.map((destination) => `export ${resource} to ${destination}`))
