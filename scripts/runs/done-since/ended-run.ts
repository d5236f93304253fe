import type { State } from '../../../core/state/open.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'

/** A run that has ended, as Temporal lists it. */
export interface EndedRun {
  /** Its workflow id. */
  run: string
  type: string
  verdict: string | null
  startTime: Date
}

/** What this data folder knows of its runs. */
export interface Records {
  dataDir: string
  state: State
  /** Where files are published; undefined for the data folder. */
  files: FileStore | undefined
}

/** Undefined if the data folder has no such run. */
export type Judge = (records: Records, run: EndedRun) => Promise<boolean | undefined>
