import type { Billing } from '../../billing/client.ts'
import type { PartFile } from '../../destinations/destination.ts'
import type { Progress } from '../../reading/state.ts'
import type { AnyOutcome, AnyReadState, Checkpoint } from './checkpoint.ts'
import type { ExportPlan } from '../plan.ts'
import type { WrittenSet } from './written-ids.ts'

/** What came new, and the state that stands for it and all before it. */
export interface SourceStep {
  records: unknown[]
  /** No object, or without an id. */
  rejected: unknown[]
  /** Ids that the service said do not exist. */
  missing?: string[]
  /** Ids of which nothing is known, and why. */
  open?: { id: string; why: string }[]
  state: AnyReadState
  progress: Progress
}

/** A read under way; closed by its `return`. */
export type Source = AsyncGenerator<SourceStep, AnyOutcome>

/** What a read needs of the worker. */
export interface ReadDeps {
  /** The data folder, absolute. */
  dataDir: string
  /** Windows of one read in flight. */
  concurrency: number
  /** How long a record may stay invisible after its `created`. */
  readLagMs: number
  /** The secret of hashed columns. */
  hashKey: string
}

export interface SourceSetup {
  deps: ReadDeps
  plan: ExportPlan
  /** Of the parts of this resource. */
  folder: string
  from: Checkpoint | undefined
  billing: Billing
  cancelled: AbortSignal
  /** The parts as they stand, on disk. */
  settled: () => Promise<readonly PartFile[]>
  /** How the parts write an id of the service: as it is, or hashed. */
  toWritten: (id: string) => string
  /** Told of the set of all that is written, where the read asks for one. */
  onWritten: (written: WrittenSet) => void
  /** Tells the attempt's own files from those of others. */
  name: string
}
