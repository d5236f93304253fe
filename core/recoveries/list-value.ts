import { Big } from 'big.js'
import type { Body } from '../billing/client.ts'
import { toDecimal } from '../billing/lossless-json.ts'
import { textOf } from '../changes/compare-fields.ts'
import { addDecimals } from '../tables/decimal-sum.ts'
import { formatAmount, formatCountOf } from '../runs/view/format.ts'
import type { Fact, Table } from '../runs/view/view.ts'

/**
 * What one billing cycle of a subscription costs by list price: the amounts of its plans times the quantities of its
 * lines. Tiers, coupons and addons are not computed.
 */
export type ListValue =
  | {
      /** Exact, by currency. */
      amounts: Record<string, string>
      /** It has tiers, coupons or addons. */
      hasMore?: true
    }
  | { notValued: string }

export interface PlanPrices {
  prices: Map<string, PlanPrice>
  /** Why a plan that is not among them has no price. */
  otherwise: string
}

type PlanPrice = { currency: string; amount: string; hasTiers: boolean } | { notValued: string }

export const noPrices: PlanPrices = { prices: new Map(), otherwise: '' }

/** Longer texts are not currencies. They would go into Temporal's history. */
const longestCurrency = 6
/** Of an amount, before and after the point; a hostile exponent would fill the memory. */
const mostDigits = 40

/** Reads the prices of plans from records of their list. */
export function addPrices(prices: PlanPrices['prices'], records: readonly Body[]): void {
  for (const record of records) {
    const id = textOf(record['id'])
    const isRepeated = prices.has(id)
    prices.set(id, isRepeated ? { notValued: 'several plans have the same id' } : toPrice(record))
  }
}

function toPrice({ currency, amount, tiers }: Body): PlanPrice {
  const price = toAmount(amount)
  const code = textOf(currency)
  if (price === undefined) return { notValued: 'a plan has no amount' }
  if (code === '' || code.length > longestCurrency) return { notValued: 'a plan has no currency' }
  return { currency: code, amount: price, hasTiers: hasItems(tiers) }
}

/** The digits of a number. */
function toAmount(value: unknown): string | undefined {
  const text = textOf(value).trim()
  const amount = toDecimal(text)
  return amount !== undefined && Math.abs(amount.e) <= mostDigits && amount.c.length <= mostDigits
    ? text
    : undefined
}

const hasItems = (value: unknown): boolean => Array.isArray(value) && value.length > 0

/** The list value of a subscription, or why it has none: it is never silently 0. */
export function toListValue({ lines, coupon, addons }: Body, plans: PlanPrices): ListValue {
  if (!Array.isArray(lines) || lines.length === 0) return { notValued: 'it has no lines' }
  const amounts: Record<string, string> = {}
  let hasMore = textOf(coupon) !== '' || hasItems(addons)
  for (const line of lines as (Body | null)[]) {
    const plan = textOf(line?.['plan'])
    const quantity = toAmount(line?.['quantity'])
    if (plan === '' || quantity === undefined) return { notValued: 'a line has no plan or no quantity' }
    const price = plans.prices.get(plan) ?? { notValued: plans.otherwise }
    if ('notValued' in price) return price
    const { currency, amount, hasTiers } = price
    hasMore ||= hasTiers || textOf(line?.['coupon']) !== ''
    amounts[currency] = addDecimals(amounts[currency] ?? '0', times(amount, quantity))
  }
  return { amounts, ...(hasMore && { hasMore }) }
}

/** The exact product, with the decimal places of the amount. */
function times(amount: string, quantity: string): string {
  const zero = amount.replaceAll(/\d/g, '0')
  return addDecimals(zero, new Big(amount).times(quantity).toFixed())
}

/** The list values of some subscriptions. */
export interface ListValues {
  /** Their exact sums, by reason and currency. */
  byReason: Record<string, Record<string, string>>
  /** How many have tiers, coupons or addons. */
  haveMore: number
  /** How many are not in the sums, by why. */
  notValued: Record<string, number>
}

export const noListValues = (): ListValues => ({ byReason: {}, haveMore: 0, notValued: {} })

export function addListValue(to: ListValues, reason: string, value: ListValue): void {
  if ('notValued' in value) {
    to.notValued[value.notValued] = (to.notValued[value.notValued] ?? 0) + 1
    return
  }
  if (value.hasMore) to.haveMore += 1
  const sums = (to.byReason[reason] ??= {})
  for (const [currency, amount] of Object.entries(value.amounts))
    sums[currency] = addDecimals(sums[currency] ?? '0', amount)
}

/** @param recovered absent before anything is resumed */
export function toValueTables(toResume: ListValues, recovered?: ListValues): Table[] {
  const { byReason, haveMore, notValued } = toResume
  const of = formatCountOf(haveMore, 'subscriptions')
  const more = haveMore === 0 ? '' : `; tiers, coupons and addons of ${of} are not computed`
  const columns = recovered === undefined ? ['to resume'] : ['to resume', 'recovered']
  const values = recovered === undefined ? [toResume] : [toResume, recovered]
  const sums = Object.entries(byReason).flatMap(([reason, currencies]) =>
    Object.keys(currencies)
      .toSorted()
      .map((currency) => [
        reason || 'no reason',
        currency,
        ...values.map((value) => formatAmount(value.byReason[reason]?.[currency] ?? '0', '.')),
      ]),
  )
  const others = Object.keys(notValued).map((why) => [
    `because ${why}`,
    ...values.map((value) => value.notValued[why] ?? 0),
  ])
  return [
    {
      title: `List value per cycle (list price, not invoiced amounts${more})`,
      head: ['reason', 'currency', ...columns],
      rows: sums,
    },
    { title: 'Not valued', head: ['', ...columns], rows: others },
  ].filter(({ rows }) => rows.length > 0)
}

export const aboutListValue: Fact = {
  name: 'List value',
  value:
    'The amount of each plan times the quantity of its lines, at the snapshot. The service’s interface has no invoices, so it is not what was or will be invoiced.',
}
