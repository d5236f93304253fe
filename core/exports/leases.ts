import type { ExportPlan } from './plan.ts'

/** The leases of a run: only one run at a time exports a resource to a destination. */
export const leasesOf = (plan: Pick<ExportPlan, 'resources' | 'to'>): string[] =>
  plan.resources.flatMap((resource) => plan.to.map((destination) => `export ${resource} to ${destination}`))
