import { KeyHeldError } from '../state/errors.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow, RowPatch } from '../state/ledger/row.ts'
import type { FencingToken } from '../state/ledger/claims.ts'
import type { ChangeState } from '../state/schema.ts'
import { hasFailed, type Outcome } from './outcomes.ts'

/** Every transition of a change, by what causes it; there are no others. */
const table = [
  ['staged', 'sending', 'claim', 'recorded on disk before the request leaves'],
  ['staged', 'done', 'check', 'a check before sending finds nothing left to do'],
  ['staged', 'parked', 'check', 'a check before sending finds that it needs a person'],
  ['staged', 'dropped', 'check', 'a check before sending finds it gone'],
  ['staged', 'unknown', 'restore', 'it may have been sent since the backup'],
  ['sending', 'unknown', 'restore', 'it may have been sent since the backup'],
  ['unknown', 'unknown', 'restore', 'it may have been sent since the backup'],
  ['sending', 'dropped', 'restore', 'a later change of its record may have been sent since the backup'],
  ['unknown', 'dropped', 'restore', 'a later change of its record may have been sent since the backup'],
  ['staged', 'dropped', 'end', 'the run ends without sending it; its key is free'],
  ['staged', 'parked', 'end', 'the run ends before trying it again'],

  ['sending', 'done', 'answer', 'the service has done it'],
  ['sending', 'rejected', 'answer', 'the service refused it, and it was not sent before'],
  ['unknown', 'staged', 'notSent', 'its sender resumed too late and knows that nothing was sent'],
  ['sending', 'staged', 'notSent', 'no request left, or the service did not act on it'],
  ['sending', 'unknown', 'noAnswer', 'it may have left, and no answer arrived'],
  ['sending', 'unknown', 'interruption', 'an earlier attempt ended while sending it'],

  ['unknown', 'done', 'lookup', 'it was found'],
  ['unknown', 'staged', 'lookup', 'it is proven absent, or this attempt failed'],
  ['unknown', 'staged', 'repeat', 'sending it twice is the same as sending it once'],
  ['unknown', 'rejected', 'lookup', 'refused, and no other reason is seen; or refused again, and absent'],
  ['unknown', 'dropped', 'lookup', 'it was refused, and a lookup shows that it is gone'],
  ['unknown', 'parked', 'lookup', 'neither found nor proven absent'],

  ['parked', 'done', 'person', 'it exists'],
  ['parked', 'staged', 'person', 'it does not exist'],
  ['parked', 'dropped', 'person', 'it is given up'],
  ['done', 'done', 'person', 'it exists under another id'],
  ['done', 'staged', 'person', 'it does not exist'],
  ['done', 'dropped', 'person', 'it is given up'],

  // An answer always wins, however late it comes.
  ['unknown', 'done', 'answer', 'the service has done it'],
  ['parked', 'done', 'answer', 'the service has done it'],
  ['staged', 'done', 'answer', 'the service has done it'],
  ['rejected', 'done', 'answer', 'the service has done it'],
  ['dropped', 'done', 'answer', 'the service has done it'],
  ['unknown', 'rejected', 'answer', 'the service refused it; a late answer'],
] as const satisfies readonly (readonly [ChangeState, ChangeState, string, string])[]

/** What causes a transition. */
export type Trigger = (typeof table)[number][2]

export const transitions = table.map(([from, to, by, rule]) => ({ from, to, by, rule }))

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
export async function transition(options: TransitionOptions): Promise<boolean> {
  const { ledger, row, to, by, outcome, patch, fromOutcome, sameClaim = true, sender } = options
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
export async function recordAnswer(options: {
  ledger: Ledger
  row: LedgerRow
  outcome: Outcome
  answerId: string | null
  answer: string | null
  error?: string | null
  at: number
}): Promise<readonly string[] | undefined> {
  const { ledger, row, outcome, answerId, answer, error = null, at } = options
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
