import type { Billing, Body } from '../../billing/client.ts'
import { subscriptions } from '../../billing/resources/subscriptions.ts'
import type { ChangeKind, LookupContext, LookupRequest, LookupResult, CheckResult } from '../change-kind.ts'
import { textOf } from '../compare-fields.ts'
import { findRecords } from './find-records.ts'
import { targetOf } from '../body.ts'

/** Fields of a subscription as a check or a lookup saw them: they show whether a resume had an effect, and go into the report. */
export type SubscriptionFacts = Readonly<Record<(typeof factFields)[number], unknown>>

/** A resume that has any effect changes one of these. */
const watchedFields = ['status', 'needs_attention_reason', 'needs_attention', 'updated'] as const
const factFields = [...watchedFields, 'next_billing'] as const

/** Why a subscription needs attention, and since when. */
export interface AttentionReason {
  reason: string
  since: string
}

interface Refusals {
  /**
   * Why a subscription that needs attention for this reason must not be resumed: it needs a person, or this run skips
   * it. Undefined where it may be resumed. `before`: what the last check or lookup saw, or the snapshot.
   */
  refuses: (attention: {
    now: AttentionReason
    before: AttentionReason
  }) => { needsPerson: string } | { skip: string } | undefined
  /** The maximum of resume requests that may have taken effect, including those of earlier runs for the same reason. */
  attempts: number
  /** Why nothing more is resumed at all; evaluated before each check. */
  ends: () => string | undefined
}

/**
 * A resume moves money, and the subscription may fall back later. So each one is checked just before its request, and
 * its outcome is what a later lookup sees, whatever the answer was.
 *
 * The body holds `id`, `line` and `customer` (single subscriptions cannot be fetched, but the list can be filtered by
 * these), `collection_scheme` and, if it is to be sent, `next_billing`.
 */
export function createResumeKind(refusals: Refusals): ChangeKind {
  return {
    name: 'resume-subscription',
    keyOf: (body) => targetOf(body).id,
    repeats: 'always',
    answered: 'resumed',
    send: ({ billing, body, options }) => {
      const nextBilling = body['next_billing']
      const fields = typeof nextBilling === 'string' ? { next_billing: nextBilling } : {}
      return billing.resumeSubscription(targetOf(body).id, fields, options)
    },
    whenUnknown: () => 'lookUp',
    checkBefore: ({ attempts: used, ...context }) => checkBefore({ ...context, ...refusals, used }),
    lookUp,
    confirmedByLookup: true,
    // Most parked subscriptions need a person for their reason, or were seen to fall back. That is not a doubt.
    isInDoubt: ({ sends, answeredAt, outcome }) =>
      sends > 0 && (answeredAt === null || outcome === 'notFound'),
    failedImmediately: ({ status }) => status === 'needs_attention',
    traitsOf: (body) => ({ signature: textOf(body['collection_scheme']), lines: 0, amount: '' }),
  }
}

/** Without the bounds of a run: for staging and lookups. */
export const resumeSubscription = createResumeKind({
  refuses: () => undefined,
  attempts: Infinity,
  ends: () => undefined,
})

async function checkBefore({
  refuses,
  attempts: maxAttempts,
  ends,
  last,
  used,
  ...context
}: LookupContext & { last: string | null; used: number } & Refusals): Promise<CheckResult> {
  const end = ends()
  if (end !== undefined) return { skip: end }
  if (used >= maxAttempts)
    return {
      instead: 'parked',
      outcome: 'attemptsUsedUp',
      message: `resumed ${used} times (attempts: ${maxAttempts})`,
    }
  const record = await findSubscription(context)
  if (record === undefined)
    return { instead: 'parked', outcome: 'notFound', message: 'not found among the customer’s subscriptions' }
  const facts = factsOf(record)
  const status = textOf(record['status'])
  if (status === 'active')
    return { instead: 'done', outcome: 'alreadyFine', message: 'it is already active', facts }
  if (status === 'cancelled' || status === 'finalized')
    return { instead: 'dropped', outcome: 'gone', message: `it is ${status} now`, facts }
  const needsPerson = (message: string) =>
    ({ instead: 'parked', outcome: 'needsPerson', message, facts }) as const
  if (status !== 'needs_attention') return needsPerson(`it is ${status} now, not in needs_attention`)
  const refusal = refuses({ now: attentionIn(facts), before: attentionBefore({ last, body: context.body }) })
  if (refusal === undefined) return { proceed: facts }
  return 'skip' in refusal ? { ...refusal, facts } : needsPerson(refusal.needsPerson)
}

const attentionIn = (facts: Partial<SubscriptionFacts>): AttentionReason => ({
  reason: textOf(facts.needs_attention_reason),
  since: textOf(facts.needs_attention),
})

function attentionBefore({ last, body }: { last: string | null; body: Body }): AttentionReason {
  const seen = factsFrom(last)
  if (seen?.status === 'needs_attention') return attentionIn(seen)
  const { reason, since } = (body['snapshot'] ?? {}) as Body
  return { reason: textOf(reason), since: textOf(since) }
}

/** The facts of the last check or lookup, or of the answer; undefined if there are none, or if the text was cut short. */
export function factsFrom(text: string | null): Partial<SubscriptionFacts> | undefined {
  try {
    return (JSON.parse(text ?? 'null') as Partial<SubscriptionFacts> | null) ?? undefined
  } catch {
    return undefined
  }
}

async function lookUp({ before, ...context }: LookupRequest): Promise<LookupResult> {
  const record = await findSubscription(context)
  if (record === undefined)
    return { result: 'unclear', outcome: 'notFound', message: 'not found among the customer’s subscriptions' }
  const facts = factsOf(record)
  const status = textOf(record['status'])
  if (status === 'active')
    return { result: 'done', id: targetOf(context.body).id, outcome: 'recovered', facts }
  const factsBefore = JSON.parse(before ?? '{}') as Body
  if (watchedFields.every((field) => textOf(record[field]) === textOf(factsBefore[field])))
    return { result: 'fellBack', outcome: 'noEffect', message: 'nothing has changed', facts }
  const reason = textOf(record['needs_attention_reason'])
  const message = [status, reason].filter(Boolean).join(': ')
  return { result: 'fellBack', outcome: 'fellBack', message, facts }
}

const factsOf = (record: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(factFields.map((field) => [field, record[field] ?? null])) as SubscriptionFacts

async function findSubscription({ billing, body, signal }: LookupContext) {
  const { id } = targetOf(body)
  const customer = textOf(body['customer'])
  const line = textOf(body['line'])
  const find = async (filters: Filters, carries: Carries) => {
    const { records } = await findSubscriptions({ billing, filters, carries, signal })
    return records.find((record) => textOf(record['id']) === id)
  }
  const isOfCustomer: Carries = (record) => textOf(record['customer']) === customer
  // Filtering by its line returns one small page. The line may be gone or have another id, and the list may hide a
  // status unless it is requested.
  return (
    (line === '' ? undefined : await find({ lines: line }, (record) => hasLine(record, line))) ??
    (await find({ customer }, isOfCustomer)) ??
    (await find({ customer, status: 'needs_attention' }, isOfCustomer))
  )
}

type Filters = Readonly<Record<string, string>>
type Carries = (record: Record<string, unknown>) => boolean

const hasLine: (record: Record<string, unknown>, line: string) => boolean = ({ lines }, line) =>
  Array.isArray(lines) && lines.some((item: unknown) => textOf((item as Body | null)?.['id']) === line)

const findSubscriptions = (context: {
  billing: Billing
  filters: Filters
  carries: Carries
  signal: AbortSignal | undefined
}) => findRecords({ resource: subscriptions, ...context })
