import {
  BillingError,
  Forbidden,
  LostReply,
  NotFound,
  SentTooLate,
  Unauthorized,
  Unreachable,
  UnexpectedReply,
} from '../../billing/errors.ts'
import type { Billing, Body, Returned } from '../../billing/client.ts'
import { isStateAway } from '../../state/errors.ts'
import { isSystemError } from '../../storage/system-errors.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { FencingToken } from '../../state/ledger/claims.ts'
import { attemptsUsed, parseBody } from '../body.ts'
import type { ChangeKind } from '../change-kind.ts'
import { describeDifference, differencesOf, textOf } from '../compare-fields.ts'
import { closeStaged } from '../close.ts'
import { explainRefusal } from '../reconcile/lookup.ts'
import { ChangeError } from '../errors.ts'
import type { Outcome } from '../outcomes.ts'
import { transition, recordAnswer } from '../transitions.ts'
import { whenStoreIsBack } from '../../state/store.ts'

export interface SendOneOptions {
  ledger: Ledger
  /** The right to claim changes of the run. */
  sender: FencingToken
  kind: ChangeKind
  billing: Billing
  row: LedgerRow
  /** When aborted, requests that have not left are not sent; those that have left are awaited. */
  stop: AbortSignal
  /** Called when the service has done the change, before that is recorded. */
  onAnswer?: () => void
}

/** What the sender must know of one send beyond its row. `error` ends the sending of the run, `notLeft` slows it down. */
export interface SendResult {
  claimed: boolean
  error?: unknown
  /** Why the request did not leave; another one may. */
  notLeft?: Unreachable | SentTooLate
  /** The ids of a change that the service has done more than once. */
  doubled?: readonly string[] | undefined
}

/** Characters. Enough for a person to recognise the answer, and small in a ledger of 100,000 rows. */
const maxAnswerLength = 2_000

/** How long a check before sending is valid. A pause that the service requests may delay the send by an hour. */
const freshMs = 30_000
/** After so many checks the request is sent anyway: at a very low rate every check would expire. */
const maxChecks = 3

/** Sends one staged change: checks it, claims it on disk, sends it and records the outcome. Never throws. */
export async function sendOne(options: SendOneOptions): Promise<SendResult> {
  try {
    const body = parseBody(options.row)
    for (let checks = 1; ; checks += 1) {
      const before = await checkBefore({ ...options, body })
      if (!before.proceed) return before.sent
      const freshUntil = checks < maxChecks ? before.freshUntil : Infinity
      const sent = await claimAndSend({ ...options, body, facts: before.facts, freshUntil })
      if (sent !== 'lookIsOld') return sent
    }
  } catch (error) {
    return { claimed: false, ...(!options.stop.aborted && { error }) }
  }
}

async function checkBefore({ ledger, kind, billing, row, body, stop }: SendOneOptions & { body: Body }) {
  if (kind.checkBefore === undefined)
    return { proceed: true, facts: undefined, freshUntil: Infinity } as const
  const result = await kind.checkBefore({
    billing,
    body,
    signal: stop,
    last: row.answer,
    attempts: attemptsUsed(row),
  })
  if ('proceed' in result)
    return {
      proceed: true,
      facts: JSON.stringify(result.proceed),
      freshUntil: ledger.now() + freshMs,
    } as const
  const answer = result.facts === undefined ? {} : { answer: JSON.stringify(result.facts) }
  const checked = { checkedAt: ledger.now(), ...answer }
  if ('skip' in result) await closeStaged({ ledger, row, why: result.skip, patch: checked })
  else {
    const { instead: to, outcome, message } = result
    const patch = { ...checked, error: message, closedAt: ledger.now(), holdsKey: to === 'done' ? 1 : 0 }
    await transition({ ledger, row, to, by: 'check', outcome, patch })
  }
  // Nothing was sent, so the breaker has learned nothing about sending.
  return { proceed: false, sent: { claimed: false } satisfies SendResult } as const
}

class NoLongerStagedError extends Error {
  override readonly name = 'NoLongerStaged'
}

class StaleCheckError extends Error {
  override readonly name = 'LookIsOld'
}

async function claimAndSend(
  options: SendOneOptions & { body: Body; facts: string | undefined; freshUntil: number },
): Promise<SendResult | 'lookIsOld'> {
  const { ledger, sender, kind, billing, row, body, facts, freshUntil, stop } = options
  let claimed: LedgerRow | undefined
  let claimError: unknown
  let mayLeave = false
  const queue = new AbortController()
  const leaveQueue = () => queue.abort(stop.reason)
  stop.addEventListener('abort', leaveQueue)
  const beforeSend = async () => {
    stop.throwIfAborted()
    if (ledger.now() > freshUntil) throw new StaleCheckError()
    // From here on the request is not cancelled: its answer is worth more than a quick stop.
    stop.removeEventListener('abort', leaveQueue)
    const { id, sends } = row
    const at = ledger.now()
    const claim = { sender, id, sends, at, ...(facts !== undefined && { before: facts }) }
    claimed = await ledger.claim(claim).catch((error: unknown) => {
      claimError = error
      throw error
    })
    if (claimed === undefined) throw new NoLongerStagedError()
    mayLeave = true
  }
  const freshConnection = kind.whenUnknown(body) === 'park'
  let stored: Returned | undefined
  try {
    const write = { signal: queue.signal, freshConnection, beforeSend }
    stored = await kind.send({ billing, body, options: write })
  } catch (error) {
    const failed = claimed && { ...options, claimed, error }
    if (failed !== undefined)
      return await whenStoreIsBack(() => (mayLeave ? closeFailed(failed) : closeNotSent(failed)))
    // The disk may refuse the mark of a claim that was committed.
    if (isStateAway(claimError) || isSystemError(claimError)) {
      const lost = { ...options, error, claimed: { ...row, claims: row.claims + 1, sends: row.sends + 1 } }
      return await whenStoreIsBack(() => closeLostClaim(lost))
    }
    if (error instanceof StaleCheckError) return 'lookIsOld'
    if (error instanceof NoLongerStagedError) return { claimed: false }
    if (error instanceof Unreachable) return { claimed: false, notLeft: error }
    throw error
  } finally {
    stop.removeEventListener('abort', leaveQueue)
  }
  if (claimed === undefined) throw new TypeError(`${kind.name} was sent without a claim`)
  const answered = { ...options, claimed, stored }
  return await whenStoreIsBack(() => closeAnswered(answered))
}

type Claimed = SendOneOptions & { body: Body; claimed: LedgerRow }

async function closeAnswered({
  ledger,
  kind,
  claimed,
  body,
  stored,
  onAnswer,
}: Claimed & { stored: Returned | undefined }): Promise<SendResult> {
  const answerId = idIn({ stored, body })
  const answer = stored === undefined ? null : JSON.stringify(stored).slice(0, maxAnswerLength)
  const at = ledger.now()
  const testMode = stored?.['test_mode']
  if (typeof testMode === 'boolean' && testMode !== (claimed.mode === 'test')) {
    const error = wrongMode(claimed, answerId)
    const found = { answerId, answer, error: error.message, at }
    const doubled = await recordAnswer({ ledger, row: claimed, outcome: 'wrongMode', ...found })
    return { claimed: true, error, doubled }
  }
  if (kind.answered === 'created' && answerId === null) {
    // The service answers a create with the record; a gateway may answer with anything.
    const patch = { answer, unknownSince: at, error: 'the answer has no id' }
    await transition({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: 'noId', patch })
    return { claimed: true }
  }
  if (kind.confirmedByLookup === true) {
    const failed = stored !== undefined && kind.failedImmediately?.(stored) === true
    const event = failed ? ({ event: 'failure', eventAt: at } as const) : {}
    const patch = { answerId, answer, answeredAt: at, unknownSince: at, error: null, ...event }
    await transition({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: kind.answered, patch })
    return { claimed: true }
  }
  const changed = changedIn({ kind, stored, body })
  const outcome = changed === null ? kind.answered : 'storedDifferently'
  const found = { answerId, answer, error: changed, at }
  onAnswer?.()
  const doubled = await recordAnswer({ ledger, row: claimed, outcome, ...found })
  return { claimed: true, doubled }
}

/** The service made a change in the wrong mode: nothing more may be sent. */
function wrongMode({ row, mode }: LedgerRow, answerId: string | null): ChangeError {
  const other = mode === 'live' ? 'test' : 'live'
  return new ChangeError(
    'WrongModeError',
    `row ${row} was requested in ${mode} mode, but the service did it in ${other} mode, as ${answerId}. ` +
      `Nothing more was sent. Check BILLING_TEST_MODE, and undo that change by hand.`,
  )
}

async function closeFailed(options: Claimed & { error: unknown }): Promise<SendResult> {
  const { ledger, claimed, error } = options
  if (error instanceof BillingError && error.effect === 'none')
    return await closeNotSent({ ...options, error })
  if (error instanceof BillingError && error.effect === 'refused')
    return await closeRefused({ ...options, error })
  const at = ledger.now()
  // A complete reply that is not the service's: the service or a gateway in front of it is failing.
  const isFault = error instanceof BillingError && !(error instanceof LostReply)
  const patch = {
    error: messageOf(error),
    unknownSince: at,
    ...(isFault && ({ event: 'fault', eventAt: at } as const)),
  }
  await transition({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: 'lostReply', patch })
  if (!(error instanceof BillingError)) return { claimed: true, error }
  // If nothing gets through, stop, rather than put every row in doubt.
  const isShutOut = error instanceof Unauthorized || error instanceof Forbidden
  return { claimed: true, ...(isShutOut && { error }) }
}

/**
 * The store failed before it confirmed a claim, which may have been committed all the same; its request did not leave.
 * While the caller has the right to send, nobody else can have claimed the row.
 */
async function closeLostClaim(options: Claimed & { error: unknown }): Promise<SendResult> {
  await putBack({ ...options, onlyBy: options.sender })
  return { claimed: false, ...(!options.stop.aborted && { error: options.error }) }
}

async function closeNotSent(options: Claimed & { error: unknown }): Promise<SendResult> {
  const { error } = options
  await putBack(options)
  const sent = { claimed: true } as const
  if (error instanceof Unreachable || error instanceof SentTooLate) return { ...sent, notLeft: error }
  return error instanceof BillingError && error.retryable ? sent : { ...sent, error }
}

async function putBack({
  ledger,
  row,
  claimed,
  error,
  onlyBy: sender,
}: Claimed & { error: unknown; onlyBy?: FencingToken }): Promise<void> {
  // Undo this send: `sends` and `outcome` again describe what earlier sends may have done.
  const sends = claimed.sends - 1
  const isFirst = sends === 0 || row.outcome === null
  const outcome = isFirst ? 'neverSent' : (row.outcome as Outcome)
  const patch = { error: isFirst ? messageOf(error) : row.error, sends }
  await transition({ ledger, row: claimed, to: 'staged', by: 'notSent', outcome, patch, sender })
}

async function closeRefused(options: Claimed & { error: BillingError }): Promise<SendResult> {
  const { ledger, kind, billing, claimed, body, error, stop } = options
  const at = ledger.now()
  const message = messageOf(error)
  const sentBefore = claimed.sends > 1
  if (sentBefore && kind.notFoundIsDone === true && error instanceof NotFound) {
    const found = { answerId: textOf(body['id']), answer: null, at }
    await recordAnswer({ ledger, row: claimed, outcome: kind.answered, ...found })
    return { claimed: true }
  }
  if (sentBefore) {
    // "It already exists" may refer to our own first request, committed late.
    const patch = { error: message, unknownSince: at }
    await transition({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: 'refusedLater', patch })
    return { claimed: true }
  }
  if (kind.confirmedByLookup === true) {
    const event = { event: 'failure', eventAt: at } as const
    const patch = { error: message, answeredAt: at, unknownSince: at, ...event }
    await transition({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: 'refused', patch })
    const row = { ...claimed, error: message }
    // If this lookup fails or shows nothing, those after the segment look again.
    await explainRefusal({ ledger, kind, billing, row, signal: stop }).catch((failure: unknown) => {
      if (!(failure instanceof BillingError) && !stop.aborted) throw failure
    })
    return { claimed: true }
  }
  const patch = { error: message, answeredAt: at, closedAt: at }
  await transition({ ledger, row: claimed, to: 'rejected', by: 'answer', outcome: 'refused', patch })
  return { claimed: true }
}

/** The service's own messages, if there are any. */
function messageOf(error: unknown): string {
  const isOwn = error instanceof BillingError && !(error instanceof UnexpectedReply)
  if (isOwn && error.messages.length > 0) return error.messages.join('; ')
  return error instanceof Error ? error.message : String(error)
}

/** How the answer differs from what was sent, for the report; fields that the answer omits are unknown. */
function changedIn({
  kind,
  stored,
  body,
}: {
  kind: ChangeKind
  stored: Returned | undefined
  body: Body
}): string | null {
  if (kind.stores === undefined || stored === undefined) return null
  const sent = Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'id' && name in stored))
  const differences = differencesOf({ schema: kind.stores, sent, stored })
  return differences.map(describeDifference).join('; ') || null
}

/** The id in the service's answer; null if the answer is about another record than requested, or about none. */
function idIn({ stored, body }: { stored: Returned | undefined; body: Body }): string | null {
  const [returnedId, requestedId] = [textOf(stored?.['id']), textOf(body['id'])]
  if (stored === undefined) return requestedId || null
  return requestedId !== '' && returnedId !== requestedId ? null : returnedId || null
}
