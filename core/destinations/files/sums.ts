import { addDecimals, DecimalSum, subtractDecimals } from '../../tables/decimal-sum.ts'
import type { Manifest } from '../manifest.ts'
import type { Sides } from './comparable.ts'

/** What a decimal column adds up to, of one currency: opening + new - gone + changed = closing. */
export interface Sum {
  /** By table and column: `plans.amount`. */
  column: string
  /** '' for none, `other` for a text that is not a currency; null if the records do not say. */
  currency: string | null
  opening: string
  new: string
  gone: string
  /** What the changed records have more than before. */
  changed: string
  closing: string
}

/** An export's files do not hold what its manifest says. */
export class UnbalancedError extends Error {
  override readonly name = 'UnbalancedError'

  constructor(what: string) {
    super(`${what} Verify both exports; one may have been changed.`)
  }
}

/** An amount of records that are new, gone or changed. */
export interface Amount {
  side: keyof Sides<unknown>
  change: 'new' | 'gone' | 'changed'
  column: string
  currency: string
  amount: string
  times: bigint
}

/**
 * Adds up what changed between the totals of two exports, which are those of their reads.
 * @throws {UnbalancedError}
 */
export async function balance(of: {
  manifests: Sides<Manifest>
  columns: readonly string[]
  hasCurrency: boolean
  amounts: AsyncIterable<Amount>
}): Promise<Sum[]> {
  const { older, newer } = of.manifests
  const totalOf = ({ totals }: Manifest, column: string): { [currency: string]: string } => {
    const { sum = '0', byCurrency = {} } = totals.columns[column] ?? {}
    return of.hasCurrency ? byCurrency : { '': sum }
  }
  const sums = new Map<string, DecimalSum>()
  const keyOf = (...names: string[]) => JSON.stringify(names)
  const currencies = new Map(
    of.columns.map((column) => [
      column,
      new Set([older, newer].flatMap((manifest) => Object.keys(totalOf(manifest, column)))),
    ]),
  )
  for await (const { side, change, column, currency, amount, times } of of.amounts) {
    currencies.get(column)!.add(currency)
    const key = keyOf(side, change, column, currency)
    sums.set(key, (sums.get(key) ?? new DecimalSum()).add(amount, times))
  }
  return of.columns.flatMap((column) =>
    [...currencies.get(column)!].toSorted().map((currency) => {
      const partOf = (side: Amount['side'], change: Amount['change']) =>
        String(sums.get(keyOf(side, change, column, currency)) ?? '0')
      const amounts = {
        opening: totalOf(older, column)[currency] ?? '0',
        new: partOf('newer', 'new'),
        gone: partOf('older', 'gone'),
        changed: subtractDecimals(partOf('newer', 'changed'), partOf('older', 'changed')),
        closing: totalOf(newer, column)[currency] ?? '0',
      }
      const rest = [amounts.new, amounts.changed].reduce(
        addDecimals,
        subtractDecimals(amounts.opening, amounts.gone),
      )
      if (/[1-9]/.test(subtractDecimals(rest, amounts.closing)))
        throw new UnbalancedError(`The sums of ${column} do not balance.`)
      return { column, currency: of.hasCurrency ? currency : null, ...alignPlaces(amounts) }
    }),
  )
}

/** The amounts with the decimal places of the most exact of them. */
function alignPlaces<Names extends string>(amounts: Record<Names, string>): Record<Names, string> {
  const entries = Object.entries<string>(amounts)
  const places = Math.max(...entries.map(([, amount]) => amount.split('.')[1]?.length ?? 0))
  return Object.fromEntries(
    entries.map(([name, amount]) => [name, addDecimals(amount, `0e-${places}`)]),
  ) as Record<Names, string>
}
