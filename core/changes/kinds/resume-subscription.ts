import type { Billing, Body } from '../../billing/client.ts'
import { subscriptions } from '../../billing/resources/subscriptions.ts'
import type { ChangeKind, LookBefore, LookUp, Seen, SeenBefore } from '../change-kind.ts'
import { textOf } from '../compare-fields.ts'
import { findRecords } from '../reconcile/find-records.ts'
import { targetOf } from '../target.ts'

/** What a look saw of a subscription: enough to tell whether a resume had an effect, and for the report. */
export type SubscriptionFacts = Readonly<Record<(typeof seenFields)[number], unknown>>

/** What a resume that had any effect would have changed. */
const watched = ['status', 'needs_attention_reason', 'needs_attention', 'updated'] as const
const seenFields = [...watched, 'next_billing'] as const

/** Why a subscription needs attention, and since when. */
export interface Trouble {
  reason: string
  since: string
}

interface Refusals {
  /**
   * Why a subscription in such trouble is not to be resumed, by a person's judgement or by this run; undefined
   * where it is. `before`: what its last look saw, or the snapshot.
   */
  refuses: (trouble: {
    now: Trouble
    before: Trouble
  }) => { needsPerson: string } | { left: string } | undefined
  /** The most resume requests that may have taken effect, those of earlier runs in the same trouble included. */
  attempts: number
  /** Why nothing more is resumed at all; asked before each look. */
  ends: () => string | undefined
}

/**
 * Money moves, and the subscription may fall back later: so it is looked at just before, and what became of it is
 * what a look after a while sees, whatever the answer was.
 *
 * The body holds `id`, what finds it (there is no way to get one subscription, but the list can be filtered by
 * `line` or `customer`), `collection_scheme` and, where it is to be sent, `next_billing`.
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
    lookBefore: ({ attempts: used, ...look }) => lookBefore({ ...look, ...refusals, used }),
    lookUp,
    confirmedByLookup: true,
    fellAtOnce: ({ status }) => status === 'needs_attention',
    traitsOf: (body) => ({ signature: textOf(body['collection_scheme']), lines: 0, amount: '' }),
  }
}

/** Without a run's own bounds: to stage, and to look what became of it. */
export const resumeSubscription = createResumeKind({
  refuses: () => undefined,
  attempts: Infinity,
  ends: () => undefined,
})

async function lookBefore({
  refuses,
  attempts: most,
  ends,
  last,
  used,
  ...look
}: LookBefore & { last: string | null; used: number } & Refusals): Promise<SeenBefore> {
  const end = ends()
  if (end !== undefined) return { left: end }
  if (used >= most)
    return {
      instead: 'parked',
      outcome: 'attemptsUsedUp',
      words: `resumed ${used} times (attempts: ${most})`,
    }
  const record = await findSubscription(look)
  if (record === undefined)
    return { instead: 'parked', outcome: 'notFound', words: 'not found among the customer’s subscriptions' }
  const saw = factsOf(record)
  const status = textOf(record['status'])
  if (status === 'active') return { instead: 'done', outcome: 'alreadyFine', words: 'it is active', saw }
  if (status === 'cancelled' || status === 'finalized')
    return { instead: 'dropped', outcome: 'gone', words: `it is ${status} now`, saw }
  const needsPerson = (words: string) => ({ instead: 'parked', outcome: 'needsPerson', words, saw }) as const
  if (status !== 'needs_attention') return needsPerson(`it is ${status} now, not in needs_attention`)
  const refusal = refuses({ now: troubleIn(saw), before: troubleBefore({ last, body: look.body }) })
  if (refusal === undefined) return { go: saw }
  return 'left' in refusal ? { ...refusal, saw } : needsPerson(refusal.needsPerson)
}

const troubleIn = (facts: Partial<SubscriptionFacts>): Trouble => ({
  reason: textOf(facts.needs_attention_reason),
  since: textOf(facts.needs_attention),
})

function troubleBefore({ last, body }: { last: string | null; body: Body }): Trouble {
  const seen = last === null ? undefined : factsFrom(last)
  if (seen?.status === 'needs_attention') return troubleIn(seen)
  const { reason, since } = (body['snapshot'] ?? {}) as Body
  return { reason: textOf(reason), since: textOf(since) }
}

/** Undefined where they are an answer that was cut short. */
function factsFrom(text: string): Partial<SubscriptionFacts> | undefined {
  try {
    return (JSON.parse(text) as Partial<SubscriptionFacts> | null) ?? undefined
  } catch {
    return undefined
  }
}

async function lookUp({ before, ...look }: LookUp): Promise<Seen> {
  const record = await findSubscription(look)
  if (record === undefined)
    return { seen: 'unclear', outcome: 'notFound', words: 'not found among the customer’s subscriptions' }
  const saw = factsOf(record)
  const status = textOf(record['status'])
  if (status === 'active') return { seen: 'done', id: targetOf(look.body).id, outcome: 'recovered', saw }
  const facts = JSON.parse(before ?? '{}') as Body
  if (watched.every((field) => textOf(record[field]) === textOf(facts[field])))
    return { seen: 'fellBack', outcome: 'noEffect', words: 'nothing about it has changed', saw }
  const reason = textOf(record['needs_attention_reason'])
  const words = [status, reason].filter(Boolean).join(': ')
  return { seen: 'fellBack', outcome: 'fellBack', words, saw }
}

const factsOf = (record: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(seenFields.map((field) => [field, record[field] ?? null])) as SubscriptionFacts

async function findSubscription({ billing, body, signal }: LookBefore) {
  const { id } = targetOf(body)
  const customer = textOf(body['customer'])
  const line = textOf(body['line'])
  const find = async (filters: Filters, carries: Carries) => {
    const { records } = await findSubscriptions({ billing, filters, carries, signal })
    return records.find((record) => textOf(record['id']) === id)
  }
  const isTheirs: Carries = (record) => textOf(record['customer']) === customer
  // Its own line finds it in one small page; a line may be gone or have another id, and a status may be hidden
  // unless it is asked for.
  return (
    (line === '' ? undefined : await find({ lines: line }, (record) => hasLine(record, line))) ??
    (await find({ customer }, isTheirs)) ??
    (await find({ customer, status: 'needs_attention' }, isTheirs))
  )
}

type Filters = Readonly<Record<string, string>>
type Carries = (record: Record<string, unknown>) => boolean

const hasLine: (record: Record<string, unknown>, line: string) => boolean = ({ lines }, line) =>
  Array.isArray(lines) && lines.some((one: unknown) => textOf((one as Body | null)?.['id']) === line)

const findSubscriptions = (look: {
  billing: Billing
  filters: Filters
  carries: Carries
  signal: AbortSignal | undefined
}) => findRecords({ resource: subscriptions, ...look })
