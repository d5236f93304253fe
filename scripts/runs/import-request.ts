import type { Expectations } from '../../core/imports/expectations.ts'
import type { ImportKindName } from '../../core/imports/kinds.ts'
import type { Mapping } from '../../core/imports/mapping/mapping.ts'

/** What a command line asks to import, read and checked; paths are absolute. */
export interface ImportOrder {
  kind: ImportKindName
  file: string
  lines?: string
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
  /** The canary as it was sent and answered, instead of as the sheet has it. */
  show?: 'json'
  local: boolean
  detach: boolean
}
