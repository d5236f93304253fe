import type { ImportInput } from '../../core/imports/input.ts'
import type { Origin } from '../../core/imports/run-files.ts'
import type { Mapping } from '../../core/imports/mapping/mapping.ts'

/** An import as the command line requests it, parsed and checked. */
export interface ImportOrder extends Origin {
  mapping: Mapping
  /** What the workflow's input has besides its files. */
  input: Omit<ImportInput, 'file' | 'mapping' | 'identity'>
  yes: boolean
  /** Shows the canary as JSON, as sent and answered, instead of as in the sheet. */
  show?: 'json' | undefined
  local: boolean
  detach: boolean
}
