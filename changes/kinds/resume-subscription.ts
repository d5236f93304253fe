import type { Billing, Body } from '../../billing/client.ts'
import { subscriptions } from '../../billing/resources/subscriptions.ts'
import type { ChangeKind, LookBefore, LookUp, Seen, SeenBefore } from '../change-kind.ts'
import { textOf } from '../contents.ts'
import { findRecords } from '../find-records.ts'
import { targetOf } from '../target.ts'

/**
 * Money moves, and the subscription may fall back later: so it is looked at just before, and what became of it is
 * what a look after the settle delay sees, whatever the answer was.
 *
 * The body holds `id`, `customer` (there is no way to get one subscription, but a customer's can be listed) and,
 * where it is to be sent, `next_billing`.
 */
export const resumeSubscription: ChangeKind = {
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
  lookBefore,
  lookUp,
  settledByLook: true,
  traitsOf: (body) => ({ signature: textOf(body['collection_scheme']), lines: 0, amount: '' }),
}

/** What a resume that had any effect would have changed. */
const watched = ['status', 'needs_attention_reason', 'needs_attention', 'updated'] as const

async function lookBefore(look: LookBefore): Promise<SeenBefore> {
  const record = await findSubscription(look)
  if (record === undefined)
    return { instead: 'parked', outcome: 'notFound', words: 'not found among the customer’s subscriptions' }
  const status = textOf(record['status'])
  if (status === 'active') return { instead: 'done', outcome: 'alreadyFine', words: 'it is active' }
  if (status !== 'needs_attention')
    return { instead: 'parked', outcome: 'needsPerson', words: `it is ${status} now, not in needs_attention` }
  return { go: Object.fromEntries(watched.map((field) => [field, record[field] ?? null])) }
}

async function lookUp({ before, ...look }: LookUp): Promise<Seen> {
  const record = await findSubscription(look)
  if (record === undefined)
    return { seen: 'unclear', outcome: 'notFound', words: 'not found among the customer’s subscriptions' }
  const status = textOf(record['status'])
  if (status === 'active') return { seen: 'done', id: targetOf(look.body).id, outcome: 'recovered' }
  const facts = JSON.parse(before ?? '{}') as Body
  if (watched.every((field) => textOf(record[field]) === textOf(facts[field])))
    return {
      seen: 'fellBack',
      outcome: 'noEffect',
      words: 'nothing about it has changed',
    }
  const reason = textOf(record['needs_attention_reason'])
  return { seen: 'fellBack', outcome: 'fellBack', words: [status, reason].filter(Boolean).join(': ') }
}

async function findSubscription({ billing, body, signal }: LookBefore) {
  const { id } = targetOf(body)
  const customer = textOf(body['customer'])
  const find = async (filters: Readonly<Record<string, string>>) => {
    const { records } = await findSubscriptions({ billing, customer, filters, signal })
    return records.find((record) => textOf(record['id']) === id)
  }
  // A status may be hidden unless it is asked for.
  return (await find({})) ?? (await find({ status: 'needs_attention' }))
}

const findSubscriptions = ({
  billing,
  customer,
  filters,
  signal,
}: {
  billing: Billing
  customer: string
  filters: Readonly<Record<string, string>>
  signal: AbortSignal | undefined
}) =>
  findRecords({
    billing,
    resource: subscriptions,
    filters: { customer, ...filters },
    carries: (record) => textOf(record['customer']) === customer,
    signal,
  })
