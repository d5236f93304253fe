import type { Billing } from '../../billing/client.ts'
import type { PartFile } from '../../destinations/destination.ts'
import type { Progress } from '../../reading/range-state.ts'
import type { State } from '../../state/open.ts'
import type { SharedFolder } from '../../storage/cached.ts'
import type { AnyOutcome, AnyReadState, Checkpoint } from './checkpoint.ts'
import type { ExportPlan } from '../plan.ts'
import type { WrittenSet } from './written-ids.ts'

/** The records of one step, and the state that includes them and everything before. */
export interface SourceStep {
  records: unknown[]
  /** Records that are not objects or have no id. */
  rejected: unknown[]
  /** Ids that the service said do not exist. */
  missing?: string[]
  /** Ids with an unknown result, and why. */
  open?: { id: string; why: string }[]
  state: AnyReadState
  progress: Progress
}

/** An active read; close it with its `return`. A range of a list has no outcome of its own. */
export type Source = AsyncGenerator<SourceStep, AnyOutcome | undefined>

/** What a read needs from the worker. */
export interface ReadDeps {
  /** Absolute path of the data folder. */
  dataDir: string
  shared: SharedFolder
  /** The clock of a read: workers on several machines may read it in turns. */
  state: Pick<State, 'now'>
  /** The number of documents that a fetch by id requests at once. */
  concurrency: number
  /** A list of twice as many records is read in ranges of at least this many. */
  recordsPerRange: number
  /** How long a record may stay invisible after its `created`, in ms. */
  readLagMs: number
  /** The secret key for hashed columns. */
  hashKey: string
}

export interface SourceSetup {
  deps: ReadDeps
  plan: ExportPlan
  /** The folder of this resource's parts. */
  folder: string
  from: Checkpoint | undefined
  billing: Billing
  cancelled: AbortSignal
  /** Closes and keeps what was read, and returns all parts. */
  settled: () => Promise<readonly PartFile[]>
  /** Converts an id of the service to the form in the parts: unchanged or hashed. */
  toWritten: (id: string) => string
  /** Called with the set of everything written, if the read needs one. */
  onWritten: (written: WrittenSet) => void
  /** The attempt's checkpoint name; distinguishes its own files from those of other attempts. */
  name: string
}
