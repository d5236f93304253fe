import { Big } from 'big.js'
import type { Chance } from './random.ts'

/** A number that is sent digit for digit as written here: `JSON.stringify(1500.50)` would lose its zero. */
export function decimal(text: string): { readonly rawJSON: string } {
  return JSON.rawJSON(text)
}

const awkward = [
  '12345678901234567.89',
  '0.10',
  '1500.50',
  '0.00',
  '-0.01',
  '99999999999999999999.9999',
  '1e3',
]

/** Draws realistic amounts, occasionally one that a double cannot hold. */
export function drawAmount(chance: Chance): { readonly rawJSON: string } {
  if (chance.happens(0.04)) return decimal(chance.pick(awkward))
  const cents = chance.happens(0.5) ? '00' : String(chance.below(100)).padStart(2, '0')
  return decimal(`${chance.below(5_000_000)}.${cents}`)
}

/** The exact product of two decimals, without an exponent; undefined if one is not a plain decimal. */
export function multiply(one: string, other: string): string | undefined {
  const plain = /^-?\d+(?:\.(\d+))?$/
  const [first, second] = [plain.exec(one), plain.exec(other)]
  if (!first || !second) return undefined
  const places = (first[1] ?? '').length + (second[1] ?? '').length
  return new Big(one).times(other).toFixed(places)
}
