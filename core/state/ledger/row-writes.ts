import type { ChangeState } from '../tables.ts'
import type { LedgerRow, RowPatch } from './row.ts'
import type { FencingToken } from './senders.ts'

export interface ClaimOptions {
  sender: FencingToken
  id: number
  /** How often it had been sent when the caller read it. */
  sends: number
  /** Now, in milliseconds since 1970. */
  at: number
  /** The facts of the check just before, as JSON text. */
  before?: string
}

export interface MoveOptions {
  id: number
  /** Its run, with whose claims the write may share a commit. */
  run?: string | undefined
  from: readonly ChangeState[]
  claims?: number
  outcome?: string
  /** Only while this is the right to claim changes of its run. */
  sender?: FencingToken | undefined
  patch: RowPatch
}

/** The writes of single changes, which make up nearly all writes of a run: see `Ledger` for what each promises. */
export interface RowWrites {
  claim(options: ClaimOptions): Promise<LedgerRow | undefined>
  move(options: MoveOptions): Promise<boolean>
}
