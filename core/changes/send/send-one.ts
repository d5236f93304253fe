import {
  BillingError,
  Forbidden,
  LostReply,
  NotFound,
  Unauthorized,
  Unreachable,
  UnexpectedReply,
} from '../../billing/errors.ts'
import type { Billing, Body, Returned } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { attemptsUsed } from '../attempts.ts'
import { parseBody } from '../body.ts'
import type { BreakerEvent } from './breaker.ts'
import type { ChangeKind } from '../change-kind.ts'
import type { ClaimJournal } from '../claim-journal.ts'
import { differencesOf, textOf } from '../compare-fields.ts'
import { leaveStaged } from '../reconcile/close-remaining.ts'
import { WrongModeError } from '../errors.ts'
import type { Outcome } from '../outcomes.ts'
import { move, moveByAnswer } from '../transitions.ts'

export interface SendOne {
  ledger: Ledger
  kind: ChangeKind
  billing: Billing
  journal: Pick<ClaimJournal, 'record'>
  row: LedgerRow
  now: () => number
  /** Aborted: what has not left yet is not sent. What has left is awaited. */
  stop: AbortSignal
}

/** What one change taught the sender. `error` ends the sending of the run, `unreachable` slows it down. */
export interface SentOne {
  event: BreakerEvent
  claimed: boolean
  error?: unknown
  unreachable?: Unreachable
}

/** Enough for a person to recognise the answer, and small beside a ledger of 100,000 rows. */
const longestAnswer = 2_000

/** A pause that the service asks for may hold a request up for an hour after its look: what was seen is old then. */
const freshMs = 30_000
/** At a rate so low that each request waits longer than that, it is sent all the same. */
const mostLooks = 3

/** Sends one staged change: looks, claims it on the disk, sends, and writes down what came of it. Never throws. */
export async function sendOne(options: SendOne): Promise<SentOne> {
  try {
    const body = parseBody(options.row)
    for (let looks = 1; ; looks += 1) {
      const before = await lookBefore({ ...options, body })
      if (!before.go) return before.sent
      const freshUntil = looks < mostLooks ? before.freshUntil : Infinity
      const sent = await claimAndSend({ ...options, body, facts: before.facts, freshUntil })
      if (sent !== 'lookIsOld') return sent
    }
  } catch (error) {
    return { event: 'notSent', claimed: false, ...(!options.stop.aborted && { error }) }
  }
}

async function lookBefore({ ledger, kind, billing, row, body, now, stop }: SendOne & { body: Body }) {
  if (kind.lookBefore === undefined) return { go: true, facts: undefined, freshUntil: Infinity } as const
  const seen = await kind.lookBefore({
    billing,
    body,
    signal: stop,
    last: row.answer,
    attempts: attemptsUsed(row),
  })
  if ('go' in seen) return { go: true, facts: JSON.stringify(seen.go), freshUntil: now() + freshMs } as const
  const answer = seen.saw === undefined ? {} : { answer: JSON.stringify(seen.saw) }
  const looked = { lookedAt: now(), ...answer }
  if ('left' in seen) await leaveStaged({ ledger, row, why: seen.left, patch: looked, now })
  else {
    const { instead: to, outcome, words } = seen
    const patch = { ...looked, error: words, closedAt: now(), holdsKey: to === 'done' }
    await move({ ledger, row, to, by: 'look', outcome, patch })
  }
  // Nothing was sent, so the breaker has learned nothing about sending.
  return { go: false, sent: { event: 'notSent', claimed: false } satisfies SentOne } as const
}

class NoLongerStaged extends Error {
  override readonly name = 'NoLongerStaged'
}

class LookIsOld extends Error {
  override readonly name = 'LookIsOld'
}

async function claimAndSend(
  options: SendOne & { body: Body; facts: string | undefined; freshUntil: number },
): Promise<SentOne | 'lookIsOld'> {
  const { ledger, kind, billing, journal, row, body, facts, freshUntil, now, stop } = options
  let claimed: LedgerRow | undefined
  let mayLeave = false
  const queue = new AbortController()
  const leaveQueue = () => queue.abort(stop.reason)
  stop.addEventListener('abort', leaveQueue)
  const beforeSend = async () => {
    stop.throwIfAborted()
    if (now() > freshUntil) throw new LookIsOld()
    // From here on the request is no longer cancelled: its answer is worth more than a quick stop.
    stop.removeEventListener('abort', leaveQueue)
    const { id, sends } = row
    const at = now()
    claimed = await ledger.claim({ id, sends, at, ...(facts !== undefined && { before: facts }) })
    if (claimed === undefined) throw new NoLongerStaged()
    await journal.record({ row: row.row, claims: claimed.claims, at })
    mayLeave = true
  }
  const freshConnection = kind.whenUnknown(body) === 'park'
  try {
    const write = { signal: queue.signal, freshConnection, beforeSend }
    const stored = await kind.send({ billing, body, options: write })
    if (claimed === undefined) throw new TypeError(`${kind.name} was sent without a claim`)
    return await closeAnswered({ ...options, claimed, stored })
  } catch (error) {
    if (claimed !== undefined && !mayLeave) return await closeNotSent({ ...options, claimed, error })
    if (claimed !== undefined) return await closeFailed({ ...options, claimed, error })
    if (error instanceof LookIsOld) return 'lookIsOld'
    if (error instanceof NoLongerStaged) return { event: 'notSent', claimed: false }
    throw error
  } finally {
    stop.removeEventListener('abort', leaveQueue)
  }
}

type Claimed = SendOne & { body: Body; claimed: LedgerRow }

async function closeAnswered({
  ledger,
  kind,
  claimed,
  body,
  stored,
  now,
}: Claimed & { stored: Returned | undefined }): Promise<SentOne> {
  const answerId = idIn({ stored, body })
  const answer = stored === undefined ? null : JSON.stringify(stored).slice(0, longestAnswer)
  const at = now()
  const testMode = stored?.['test_mode']
  if (typeof testMode === 'boolean' && testMode !== (claimed.mode === 'test')) {
    const error = new WrongModeError({ row: claimed.row, asked: claimed.mode, answerId })
    const found = { answerId, answer, error: error.message, at }
    await moveByAnswer({ ledger, row: claimed, outcome: 'wrongMode', ...found })
    return { event: 'failure', claimed: true, error }
  }
  if (kind.answered === 'created' && answerId === null) {
    // The service answers a create with the record; a gateway answers with anything.
    const patch = { answer, unknownSince: at, error: 'the answer has no id' }
    await move({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: 'noId', patch })
    return { event: 'pending', claimed: true }
  }
  if (kind.confirmedByLookup === true) {
    const patch = { answerId, answer, answeredAt: at, unknownSince: at, error: null }
    await move({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: kind.answered, patch })
    const fell = stored !== undefined && kind.fellAtOnce?.(stored) === true
    return { event: fell ? 'failure' : 'pending', claimed: true }
  }
  const changed = changedIn({ kind, stored, body })
  const outcome = changed === null ? kind.answered : 'storedOtherwise'
  await moveByAnswer({ ledger, row: claimed, outcome, answerId, answer, error: changed, at })
  return { event: 'success', claimed: true }
}

/** What the answer holds otherwise than it was sent, for people; what it does not mention is not known. */
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
  const words = differences.map(
    (one) => `${one.field} was sent as ${one.sent} and is stored as ${one.stored}`,
  )
  return words.length === 0 ? null : words.join('; ')
}

/** The id that the service itself gave; an answer about another record than was asked for, or about none, has none. */
function idIn({ stored, body }: { stored: Returned | undefined; body: Body }): string | null {
  const [told, asked] = [textOf(stored?.['id']), textOf(body['id'])]
  if (stored === undefined) return asked || null
  return asked !== '' && told !== asked ? null : told || null
}

async function closeFailed(options: Claimed & { error: unknown }): Promise<SentOne> {
  const { ledger, claimed, error, now } = options
  if (error instanceof BillingError && error.effect === 'none')
    return await closeNotSent({ ...options, error })
  if (error instanceof BillingError && error.effect === 'refused')
    return await closeRefused({ ...options, error })
  const patch = { error: sentenceOf(error), unknownSince: now() }
  await move({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: 'lostReply', patch })
  if (!(error instanceof BillingError)) return { event: 'pending', claimed: true, error }
  // A whole reply that is not the service's word: it, or a gateway in front of it, is failing.
  const event = error instanceof LostReply ? 'pending' : 'fault'
  // One that lets nothing through is no reason to put every row in doubt.
  const isShutOut = error instanceof Unauthorized || error instanceof Forbidden
  return { event, claimed: true, ...(isShutOut && { error }) }
}

async function closeNotSent({ ledger, row, claimed, error }: Claimed & { error: unknown }): Promise<SentOne> {
  // This send never was one: what an earlier send may have done is told by the sends and the outcome before it.
  const sends = claimed.sends - 1
  const isFirst = sends === 0 || row.outcome === null
  const outcome = isFirst ? 'neverSent' : (row.outcome as Outcome)
  const patch = { error: isFirst ? sentenceOf(error) : row.error, sends }
  await move({ ledger, row: claimed, to: 'staged', by: 'notSent', outcome, patch })
  const sent = { event: 'notSent', claimed: true } as const
  if (error instanceof Unreachable) return { ...sent, unreachable: error }
  return error instanceof BillingError && error.retryable ? sent : { ...sent, error }
}

async function closeRefused(options: Claimed & { error: BillingError }): Promise<SentOne> {
  const { ledger, kind, claimed, body, error, now } = options
  const at = now()
  const words = sentenceOf(error)
  const sentBefore = claimed.sends > 1
  if (sentBefore && kind.goneIsDone === true && error instanceof NotFound) {
    const found = { answerId: textOf(body['id']), answer: null, at }
    await moveByAnswer({ ledger, row: claimed, outcome: kind.answered, ...found })
    return { event: 'success', claimed: true }
  }
  if (sentBefore) {
    // "It exists already" may be our own first request, committed late.
    const patch = { error: words, unknownSince: at }
    await move({ ledger, row: claimed, to: 'unknown', by: 'noAnswer', outcome: 'refusedLater', patch })
    return { event: 'pending', claimed: true }
  }
  const patch = { error: words, answeredAt: at, closedAt: at }
  await move({ ledger, row: claimed, to: 'rejected', by: 'answer', outcome: 'refused', patch })
  return { event: 'failure', claimed: true }
}

/** The service's own words where it said any. */
function sentenceOf(error: unknown): string {
  const isOwn = error instanceof BillingError && !(error instanceof UnexpectedReply)
  if (isOwn && error.words.length > 0) return error.words.join('; ')
  return error instanceof Error ? error.message : String(error)
}
