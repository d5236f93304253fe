import type { Expectations } from '../imports/expectations.ts'
import type { ImportKindName } from '../imports/import-kind.ts'
import type { Mapping } from '../imports/mapping.ts'

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
  local: boolean
  detach: boolean
}
