import type { DestinationName } from '../destinations/names.ts'
import type { ExportPlan } from './plan.ts'

type Resource = ExportPlan['resources'][number]

/** One resource in one destination, as it was published. */
export interface PublishedExport {
  resource: Resource
  destination: DestinationName
  verdict: 'proven' | 'unproven'
  reasons: string[]
  records: number
  /** For people: a folder, a file or a schema. */
  where: string
  /** The manifest's file; empty where the destination keeps none (a warehouse). */
  manifest: string
  /** What a person should look at: deletes that were held back. */
  warnings: string[]
  /** Of a fetch by id: the ids that do not exist, the first of them by name. */
  missing?: { count: number; first: string[] }
}

/** A destination that a read could not be published to. */
export interface PublishFailure {
  destination: DestinationName
  error: string
}

/** What became of one resource of a run. */
export type ResourceResult =
  | {
      resource: Resource
      published: PublishedExport[]
      failed?: PublishFailure[]
      /** Destinations that a stop left out; `publish` does it later, from the kept parts. */
      unpublished?: DestinationName[]
    }
  | { resource: Resource; stopped: true }
  | { resource: Resource; error: string }

export interface ExportReport {
  /** One sentence; the first thing the Temporal UI shows of a result. */
  summary: string
  run: string
  verdict: 'proven' | 'unproven' | 'stopped' | 'failed'
  exports: ResourceResult[]
  /** Of a fetch by id: the ids that do not exist; `file` has them all. */
  missing?: { count: number; first: string[]; file: string }
}
