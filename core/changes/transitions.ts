import { KeyHeldError } from '../state/errors.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow, RowPatch } from '../state/ledger/row.ts'
import type { ChangeState } from '../state/tables.ts'
import type { Outcome } from './outcomes.ts'

/** What makes a change move. */
export type Cause =
  | 'claim'
  | 'answer'
  | 'notSent'
  | 'noAnswer'
  | 'interruption'
  | 'look'
  | 'repeat'
  | 'restore'
  | 'end'
  | 'person'

interface Move {
  from: ChangeState
  to: ChangeState
  by: Cause
  rule: string
}

/** Every move a change can make, and nothing else moves one. */
export const moves: readonly Move[] = [
  { from: 'staged', to: 'sending', by: 'claim', rule: 'on the disk before the request leaves' },
  { from: 'staged', to: 'done', by: 'look', rule: 'a look just before shows that nothing is left to do' },
  { from: 'staged', to: 'parked', by: 'look', rule: 'a look just before shows that it is for a person' },
  { from: 'staged', to: 'dropped', by: 'look', rule: 'a look just before shows that it is gone' },
  {
    from: 'staged',
    to: 'unknown',
    by: 'restore',
    rule: 'the ledger is behind the run: it may have been sent',
  },
  { from: 'sending', to: 'unknown', by: 'restore', rule: 'the same, and it was being sent at the backup' },
  { from: 'unknown', to: 'unknown', by: 'restore', rule: 'the same: it may have been sent once more' },
  { from: 'done', to: 'unknown', by: 'restore', rule: 'the same, and it was done at the backup' },
  { from: 'rejected', to: 'unknown', by: 'restore', rule: 'the same, and it was rejected at the backup' },
  { from: 'parked', to: 'unknown', by: 'restore', rule: 'the same, and it was parked at the backup' },
  { from: 'dropped', to: 'unknown', by: 'restore', rule: 'the same, and it was dropped at the backup' },
  {
    from: 'staged',
    to: 'dropped',
    by: 'end',
    rule: 'the run leaves it; its key is free for another run',
  },
  { from: 'staged', to: 'parked', by: 'end', rule: 'the run leaves it before it was tried again' },

  { from: 'sending', to: 'done', by: 'answer', rule: 'the service has done it' },
  { from: 'sending', to: 'rejected', by: 'answer', rule: 'the service said no, and it was not sent before' },
  { from: 'sending', to: 'staged', by: 'notSent', rule: 'no request left, or the service did not act on it' },
  {
    from: 'sending',
    to: 'unknown',
    by: 'noAnswer',
    rule: 'it could have left, and no answer tells what became of it',
  },
  { from: 'sending', to: 'unknown', by: 'interruption', rule: 'an earlier attempt ended while sending it' },

  { from: 'unknown', to: 'done', by: 'look', rule: 'it was found' },
  { from: 'unknown', to: 'staged', by: 'look', rule: 'it is proven absent, or its attempt is used up' },
  { from: 'unknown', to: 'staged', by: 'repeat', rule: 'sending it twice is the same as sending it once' },
  {
    from: 'unknown',
    to: 'rejected',
    by: 'look',
    rule: 'it was refused when sent again, and is proven absent',
  },
  { from: 'unknown', to: 'parked', by: 'look', rule: 'neither found nor proven absent: for a person' },

  { from: 'parked', to: 'done', by: 'person', rule: 'a person found it there' },
  { from: 'parked', to: 'staged', by: 'person', rule: 'a person says that it is not there' },
  { from: 'parked', to: 'dropped', by: 'person', rule: 'a person leaves it' },

  // An answer always wins, however late it comes.
  { from: 'unknown', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'parked', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'staged', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'rejected', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'dropped', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'unknown', to: 'rejected', by: 'answer', rule: 'a late answer: the service said no' },
]

interface Moved {
  ledger: Ledger
  row: Pick<LedgerRow, 'id' | 'sends'>
  to: ChangeState
  by: Exclude<Cause, 'claim'>
  outcome: Outcome
  patch?: Omit<RowPatch, 'state' | 'outcome'>
  /** Only if it was not sent again since the caller read `row`. An answer of any send says that it is done. */
  sameSend?: boolean
}

/**
 * Makes one of the moves above, durably. False where the change is no longer in a state that the move starts
 * from: then somebody who knew more was quicker, and nothing is written.
 */
export async function move({
  ledger,
  row,
  to,
  by,
  outcome,
  patch,
  sameSend = true,
}: Moved): Promise<boolean> {
  const from = moves
    .filter((allowed) => allowed.to === to && allowed.by === by)
    .map((allowed) => allowed.from)
  if (from.length === 0) throw new TypeError(`no change moves to ${to} by ${by}`)
  return await ledger.move({
    id: row.id,
    from,
    ...(sameSend && { sends: row.sends }),
    patch: { ...patch, state: to, outcome },
  })
}

/** Records that the service has done a change, whatever the ledger believed of it. */
export async function moveByAnswer({
  ledger,
  row,
  outcome,
  answerId,
  answer,
  error = null,
  at,
}: {
  ledger: Ledger
  row: LedgerRow
  outcome: Outcome
  answerId: string | null
  answer: string | null
  error?: string | null
  at: number
}): Promise<void> {
  const patch = { answerId, answer, error, answeredAt: at, closedAt: at }
  try {
    if (await move({ ledger, row, to: 'done', by: 'answer', outcome, patch, sameSend: false })) return
  } catch (failure) {
    if (!(failure instanceof KeyHeldError)) throw failure
    const words = `the service has done it as ${answerId}, after another run had taken its key: look at both`
    await ledger.move({ id: row.id, from: ['rejected', 'dropped'], patch: { ...patch, error: words } })
    return
  }
  const now = await ledger.byId({ id: row.id })
  if (now?.answerId === answerId) return
  const words = `the service has done it twice: as ${now?.answerId} and as ${answerId}`
  await ledger.move({ id: row.id, from: ['done'], patch: { outcome: 'doubled', error: words } })
}

/** The table of moves for the docs, as markdown. */
export function movesAsMarkdown(): string {
  const lines = moves.map(({ from, to, by, rule }) => `| ${from} | ${to} | ${by} | ${rule} |`)
  return ['| from | to | by | rule |', '|---|---|---|---|', ...lines, ''].join('\n')
}
