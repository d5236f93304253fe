import type { Expectations } from '../../core/imports/expectations.ts'
import type { ImportKindName } from '../../core/imports/kinds.ts'
import type { Origin } from '../../core/imports/run-files.ts'
import type { Mapping } from '../../core/imports/mapping/mapping.ts'

/** An import as the command line requests it, parsed and checked; paths are absolute. */
export interface ImportOrder {
  kind: ImportKindName
  file: string
  /** The options that say how it is read, as typed. */
  reading: Origin['reading']
  mapping: Mapping
  columns?: string[]
  dryRun: boolean
  yes: boolean
  waitForApproval: boolean
  onInvalid: 'stop' | 'skip'
  done: 'refuse' | 'skip'
  existing: 'refuse' | 'skip' | 'create'
  sendAgain: number[]
  expect: Expectations
  canary?: number
  maxFailures?: number
  requestsPerSecond?: number
  /** Shows the canary as JSON, as sent and answered, instead of as in the sheet. */
  show?: 'json'
  local: boolean
  detach: boolean
}
