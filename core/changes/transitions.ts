import { KeyHeldError } from '../state/errors.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow, RowPatch } from '../state/ledger/row.ts'
import type { FencingToken } from '../state/ledger/claims.ts'
import type { ChangeState } from '../state/schema.ts'
import { hasFailed, type Outcome } from './outcomes.ts'

/** What causes a transition. */
export type Trigger =
  | 'claim'
  | 'answer'
  | 'notSent'
  | 'noAnswer'
  | 'interruption'
  | 'check'
  | 'lookup'
  | 'repeat'
  | 'restore'
  | 'end'
  | 'person'

interface Transition {
  from: ChangeState
  to: ChangeState
  by: Trigger
  rule: string
}

/** Every transition of a change; there are no others. */
export const transitions: readonly Transition[] = [
  { from: 'staged', to: 'sending', by: 'claim', rule: 'recorded on disk before the request leaves' },
  {
    from: 'staged',
    to: 'done',
    by: 'check',
    rule: 'the check just before sending shows that nothing is left to do',
  },
  {
    from: 'staged',
    to: 'parked',
    by: 'check',
    rule: 'the check just before sending shows that it needs a person',
  },
  { from: 'staged', to: 'dropped', by: 'check', rule: 'the check just before sending shows that it is gone' },
  {
    from: 'staged',
    to: 'unknown',
    by: 'restore',
    rule: 'the ledger was restored from a backup: it may have been sent since',
  },
  {
    from: 'sending',
    to: 'unknown',
    by: 'restore',
    rule: 'the same; it was being sent at the time of the backup',
  },
  { from: 'unknown', to: 'unknown', by: 'restore', rule: 'the same; it may have been sent once more' },
  {
    from: 'staged',
    to: 'dropped',
    by: 'end',
    rule: 'the run ends without sending it; its key is free for another run',
  },
  { from: 'staged', to: 'parked', by: 'end', rule: 'the run ends before trying it again' },

  { from: 'sending', to: 'done', by: 'answer', rule: 'the service has done it' },
  {
    from: 'sending',
    to: 'rejected',
    by: 'answer',
    rule: 'the service refused it, and it was not sent before',
  },
  {
    from: 'unknown',
    to: 'staged',
    by: 'notSent',
    rule: 'its sender resumed too late and knows that nothing was sent',
  },
  { from: 'sending', to: 'staged', by: 'notSent', rule: 'no request left, or the service did not act on it' },
  {
    from: 'sending',
    to: 'unknown',
    by: 'noAnswer',
    rule: 'the request may have left, and no answer says what happened',
  },
  { from: 'sending', to: 'unknown', by: 'interruption', rule: 'an earlier attempt ended while sending it' },

  { from: 'unknown', to: 'done', by: 'lookup', rule: 'it was found' },
  { from: 'unknown', to: 'staged', by: 'lookup', rule: 'it is proven absent, or this attempt failed' },
  { from: 'unknown', to: 'staged', by: 'repeat', rule: 'sending it twice is the same as sending it once' },
  {
    from: 'unknown',
    to: 'rejected',
    by: 'lookup',
    rule: 'it was refused, and a lookup shows no other reason; or refused when sent again, and proven absent',
  },
  {
    from: 'unknown',
    to: 'dropped',
    by: 'lookup',
    rule: 'it was refused, and a lookup shows that it is gone',
  },
  { from: 'unknown', to: 'parked', by: 'lookup', rule: 'neither found nor proven absent: needs a person' },

  { from: 'parked', to: 'done', by: 'person', rule: 'a person found it there' },
  { from: 'parked', to: 'staged', by: 'person', rule: 'a person says that it is not there' },
  { from: 'parked', to: 'dropped', by: 'person', rule: 'a person drops it' },
  { from: 'done', to: 'done', by: 'person', rule: 'a person corrects the id under which they found it' },
  {
    from: 'done',
    to: 'staged',
    by: 'person',
    rule: 'a person corrects that they found it: it does not exist',
  },
  { from: 'done', to: 'dropped', by: 'person', rule: 'a person corrects that they found it, and drops it' },

  // An answer always wins, however late it comes.
  { from: 'unknown', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'parked', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'staged', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'rejected', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'dropped', to: 'done', by: 'answer', rule: 'a late answer: the service has done it' },
  { from: 'unknown', to: 'rejected', by: 'answer', rule: 'a late answer: the service refused it' },
]

interface TransitionOptions {
  ledger: Ledger
  row: Pick<LedgerRow, 'id' | 'claims'>
  to: ChangeState
  by: Exclude<Trigger, 'claim'>
  outcome: Outcome
  patch?: Omit<RowPatch, 'state' | 'outcome'>
  /** Only from this outcome. */
  fromOutcome?: string | null
  /** Only if it was not claimed again since the caller read `row`. An answer to any send proves that it is done. */
  sameClaim?: boolean
  /** Only while this is the right to claim changes of its run. */
  sender?: FencingToken | undefined
}

/**
 * Makes one of the transitions above, durably. Returns false and writes nothing if the change is no longer in a state
 * that the transition starts from: another caller with newer information was faster.
 */
export async function transition({
  ledger,
  row,
  to,
  by,
  outcome,
  patch,
  fromOutcome,
  sameClaim = true,
  sender,
}: TransitionOptions): Promise<boolean> {
  const from = transitions
    .filter((allowed) => allowed.to === to && allowed.by === by)
    .map((allowed) => allowed.from)
  if (from.length === 0) throw new TypeError(`no transition leads to ${to} by ${by}`)
  return await ledger.move({
    id: row.id,
    from,
    ...(sameClaim && { claims: row.claims }),
    ...(fromOutcome && { outcome: fromOutcome }),
    sender,
    patch: { ...eventOf({ to, by, outcome, at: patch?.closedAt }), ...patch, state: to, outcome },
  })
}

/** What the breaker learns of sending from a transition; nothing from a person, a check or the end of the run. */
function eventOf({
  to,
  by,
  outcome,
  at = null,
}: Pick<TransitionOptions, 'to' | 'by' | 'outcome'> & { at: number | null | undefined }): RowPatch {
  if (by !== 'answer' && by !== 'lookup') return {}
  const failed = hasFailed({ state: to, outcome })
  if (to !== 'done' && !failed) return {}
  return { event: failed ? 'failure' : 'success', eventAt: at }
}

/**
 * Records that the service has done a change, whatever state the ledger has for it. Returns all ids that it has there if
 * the service has done it more than once: the ledger has it under another id.
 */
export async function recordAnswer({
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
}): Promise<readonly string[] | undefined> {
  const patch = { answerId, answer, error, answeredAt: at, closedAt: at }
  for (;;) {
    try {
      if (await transition({ ledger, row, to: 'done', by: 'answer', outcome, patch, sameClaim: false }))
        return undefined
    } catch (failure) {
      if (!(failure instanceof KeyHeldError)) throw failure
      const message = `the service has done it as ${answerId}, after another run took its key: check both`
      const kept = { id: row.id, patch: { ...patch, error: message } }
      if (await ledger.move({ ...kept, from: ['rejected', 'dropped'] })) return undefined
      continue
    }
    const current = await ledger.byId({ id: row.id })
    if (current === undefined || current.answerId === answerId) return undefined
    const known = idsOf(current)
    if (known.includes(answerId ?? unknownId)) return known
    const ids = [...known, answerId ?? unknownId]
    const same = {
      id: row.id,
      from: ['done'],
      ...(current.outcome && { outcome: current.outcome }),
    } as const
    // A person may have corrected it in the meantime. Then this answer is the first one.
    const otherIds = JSON.stringify(ids.slice(1))
    const doubled = { outcome: 'doubled', otherIds, error: doneTwice(ids) } satisfies RowPatch
    if (await ledger.move({ ...same, patch: doubled })) return ids
  }
}

const unknownId = 'an unknown id'

/** All ids under which the service has a change. */
const idsOf = ({ answerId, otherIds }: LedgerRow): string[] => [
  answerId ?? unknownId,
  ...(JSON.parse(otherIds ?? '[]') as string[]),
]

export const doneTwice = (ids: readonly string[]): string =>
  `the service has done it more than once: ${ids.map((id) => `as ${id}`).join(' and ')}`
