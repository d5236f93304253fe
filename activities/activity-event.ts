import type { ReportCounts } from '../core/runs/view/counts.ts'
import type { DestinationName } from '../core/destinations/names.ts'
import type { ExportPlan } from '../core/exports/plan.ts'

type Resource = ExportPlan['resources'][number]

/** What an activity has done, for people: names, counts and verdicts, never a row. */
export type Deed =
  /** A stretch of a read ended; `page` counts the responses of the whole read. */
  | { did: 'read'; run: string; resource: Resource; page: number; records: number; verdict?: string }
  | Published
  | { did: 'sent'; run: string; kind: string; ended: string; counts: ReportCounts }
  | { did: 'ended'; run: string; verdict: string }

export interface Published {
  did: 'published'
  run: string
  resource: Resource
  destination: DestinationName
  verdict: 'proven' | 'unproven'
  records: number
  ms: number
  /** When the read began, in ms since 1970. */
  readAt: number
  /** Of all that the list holds, or of all that changed: not filtered, not cut short. */
  whole: boolean
}

/** Told by the activities, for those who count and log. It must not throw, and what it does must not take long. */
export interface ActivityObserver {
  /** Responses of a list were taken, and records of them written. */
  took(step: { resource: Resource; pages: number; records: number }): void
  did(deed: Deed): void
}
