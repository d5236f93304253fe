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
import type { LedgerRow, RowPatch } from '../../state/ledger/row.ts'
import type { FencingToken } from '../../state/ledger/claims.ts'
import { attemptsUsed, parseBody } from '../body.ts'
import type { ChangeKind } from '../change-kind.ts'
import { describeDifference, differencesOf, textOf } from '../compare-fields.ts'
import { closeStaged } from '../close.ts'
import { explainRefusal } from '../reconcile.ts'
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
  /** As in `SegmentOptions`. */
  onAway?: (() => void) | undefined
}

/** What the sender must know of one send besides what its row says. */
export interface SendResult {
  /** Why the run must send nothing more. */
  error?: unknown
  /** Why the request did not leave; another one may, later. */
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
  const { ledger, kind, stop } = options
  try {
    if (kind.checkBefore === undefined) return (await claimAndSend(options, {})) ?? {}
    for (let checks = 1; ; checks += 1) {
      const before = await checkBefore(options)
      // Nothing is sent, so the breaker learns nothing about sending.
      if (before === undefined) return {}
      const sendBy = checks < maxChecks ? ledger.now() + freshMs : Infinity
      const sent = await claimAndSend(options, { before, sendBy })
      if (sent !== undefined) return sent
    }
  } catch (error) {
    return stop.aborted ? {} : { error }
  }
}

/** The facts that the check saw, as JSON, if the change is to be sent; else it is closed. */
async function checkBefore({
  ledger,
  kind,
  billing,
  row,
  stop: signal,
}: SendOneOptions): Promise<string | undefined> {
  const attempts = attemptsUsed(row)
  const found = await kind.checkBefore?.({
    billing,
    body: parseBody(row),
    signal,
    last: row.answer,
    attempts,
  })
  if (found === undefined) return undefined
  if ('proceed' in found) return JSON.stringify(found.proceed ?? null)
  const answer = found.facts === undefined ? {} : { answer: JSON.stringify(found.facts) }
  const checked = { checkedAt: ledger.now(), ...answer }
  if ('skip' in found) await closeStaged({ ledger, row, why: found.skip, patch: checked })
  else {
    const { instead: to, outcome, message } = found
    const patch = { ...checked, error: message, closedAt: ledger.now(), holdsKey: to === 'done' ? 1 : 0 }
    await transition({ ledger, row, to, by: 'check', outcome, patch })
  }
  return undefined
}

/** Thrown into the request so that it does not leave. */
class NotClaimedError extends Error {
  override readonly name = 'NotClaimedError'
}

/** Undefined if the check has expired by the time that the request could leave: nothing was claimed. */
async function claimAndSend(
  options: SendOneOptions,
  { before, sendBy = Infinity }: { before?: string; sendBy?: number },
): Promise<SendResult | undefined> {
  const { ledger, sender, kind, billing, row, stop, onAway } = options
  const body = parseBody(row)
  let claimed: LedgerRow | undefined
  let claimError: unknown
  let isExpired = false
  const queue = new AbortController()
  const leaveQueue = () => queue.abort(stop.reason)
  stop.addEventListener('abort', leaveQueue)
  const beforeSend = async () => {
    stop.throwIfAborted()
    isExpired = ledger.now() > sendBy
    if (isExpired) throw new NotClaimedError()
    // From here on the request is not cancelled: its answer is worth more than a quick stop.
    stop.removeEventListener('abort', leaveQueue)
    const claim = { sender, id: row.id, sends: row.sends, at: ledger.now(), ...(before && { before }) }
    claimed = await ledger.claim(claim).catch((error: unknown) => {
      claimError = error
      throw error
    })
    if (claimed === undefined) throw new NotClaimedError()
  }
  const freshConnection = kind.whenUnknown(body) === 'park'
  let stored: Returned | undefined
  try {
    const write = { signal: queue.signal, freshConnection, beforeSend }
    stored = await kind.send({ billing, body, options: write })
  } catch (error) {
    const failed = claimed && { ...options, claimed }
    if (failed !== undefined) return await whenStoreIsBack(() => closeFailed(failed, error), { onAway })
    // The disk may refuse the mark of a claim that was committed. Its request did not leave, and while the caller has the
    // right to send, nobody else can have claimed the row.
    if (isStateAway(claimError) || isSystemError(claimError)) {
      const lost = { ...options, claimed: { ...row, claims: row.claims + 1, sends: row.sends + 1 } }
      await whenStoreIsBack(() => unclaim(lost, error, sender), { onAway })
    }
    if (error instanceof NotClaimedError) return isExpired ? undefined : {}
    if (error instanceof Unreachable) return { notLeft: error }
    throw error
  } finally {
    stop.removeEventListener('abort', leaveQueue)
  }
  if (claimed === undefined) throw new TypeError(`${kind.name} was sent without a claim`)
  const answered = { ...options, claimed }
  return await whenStoreIsBack(() => closeAnswered(answered, stored), { onAway })
}

type Claimed = SendOneOptions & { claimed: LedgerRow }

async function closeAnswered(options: Claimed, stored: Returned | undefined): Promise<SendResult> {
  const { ledger, kind, claimed, onAnswer } = options
  const body = parseBody(claimed)
  const answerId = idIn({ stored, body })
  const answer = stored === undefined ? null : JSON.stringify(stored).slice(0, maxAnswerLength)
  const at = ledger.now()
  const testMode = stored?.['test_mode']
  if (typeof testMode === 'boolean' && testMode !== (claimed.mode === 'test')) {
    const error = wrongMode(claimed, answerId)
    const found = { answerId, answer, error: error.message, at }
    const doubled = await recordAnswer({ ledger, row: claimed, outcome: 'wrongMode', ...found })
    return { error, doubled }
  }
  if (kind.answered === 'created' && answerId === null) {
    // The service answers a create with the record; a gateway may answer with anything.
    await leaveUnknown(options, 'noId', { answer, error: 'the answer has no id' })
    return {}
  }
  if (kind.confirmedByLookup === true) {
    const failed = stored !== undefined && kind.failedImmediately?.(stored) === true
    const event = failed ? ({ event: 'failure', eventAt: at } as const) : {}
    await leaveUnknown(options, kind.answered, { answerId, answer, answeredAt: at, error: null, ...event })
    return {}
  }
  const changed = changedIn({ kind, stored, body })
  const outcome = changed === null ? kind.answered : 'storedDifferently'
  const found = { answerId, answer, error: changed, at }
  onAnswer?.()
  return { doubled: await recordAnswer({ ledger, row: claimed, outcome, ...found }) }
}

/** A lookup will decide. */
async function leaveUnknown(
  { ledger, claimed: row }: Claimed,
  outcome: Outcome,
  patch: Omit<RowPatch, 'state' | 'outcome'>,
): Promise<void> {
  const since = { unknownSince: ledger.now(), ...patch }
  await transition({ ledger, row, to: 'unknown', by: 'noAnswer', outcome, patch: since })
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

async function closeFailed(options: Claimed, error: unknown): Promise<SendResult> {
  if (!(error instanceof BillingError)) {
    await leaveUnknown(options, 'lostReply', { error: messageOf(error) })
    return { error }
  }
  if (error.effect === 'none') {
    await unclaim(options, error)
    if (error instanceof Unreachable || error instanceof SentTooLate) return { notLeft: error }
    return error.retryable ? {} : { error }
  }
  if (error.effect === 'refused') {
    await closeRefused(options, error)
    return {}
  }
  // A complete reply that is not the service's: the service or a gateway in front of it is failing.
  const fault = error instanceof LostReply ? {} : ({ event: 'fault', eventAt: options.ledger.now() } as const)
  await leaveUnknown(options, 'lostReply', { error: messageOf(error), ...fault })
  // If nothing gets through, stop, rather than put every row in doubt.
  return error instanceof Unauthorized || error instanceof Forbidden ? { error } : {}
}

/** Undoes a send whose request did not leave: `sends` and `outcome` again describe what earlier sends may have done. */
async function unclaim(
  { ledger, row, claimed }: Claimed,
  error: unknown,
  sender?: FencingToken,
): Promise<void> {
  const sends = claimed.sends - 1
  const isFirst = sends === 0 || row.outcome === null
  const outcome = isFirst ? 'neverSent' : (row.outcome as Outcome)
  const patch = { error: isFirst ? messageOf(error) : row.error, sends }
  await transition({ ledger, row: claimed, to: 'staged', by: 'notSent', outcome, patch, sender })
}

async function closeRefused(options: Claimed, error: BillingError): Promise<void> {
  const { ledger, kind, billing, claimed, stop } = options
  const at = ledger.now()
  const refusal = { error: messageOf(error), answeredAt: at }
  if (claimed.sends > 1 && kind.notFoundIsDone === true && error instanceof NotFound) {
    const found = { answerId: textOf(parseBody(claimed)['id']), answer: null, at }
    await recordAnswer({ ledger, row: claimed, outcome: kind.answered, ...found })
  }
  // "It already exists" may refer to our own first request, committed late.
  else if (claimed.sends > 1) await leaveUnknown(options, 'refusedLater', { error: refusal.error })
  else if (kind.confirmedByLookup === true) {
    await leaveUnknown(options, 'refused', { ...refusal, event: 'failure', eventAt: at })
    // If this lookup fails or shows nothing, a later one looks again.
    const row = { ...claimed, error: refusal.error }
    await explainRefusal({ ledger, kind, billing, row, signal: stop }).catch((failure: unknown) => {
      if (!(failure instanceof BillingError) && !stop.aborted) throw failure
    })
  } else {
    const patch = { ...refusal, closedAt: at }
    await transition({ ledger, row: claimed, to: 'rejected', by: 'answer', outcome: 'refused', patch })
  }
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
