import type { Body } from '../billing/client.ts'
import { compareDecimals } from '../changes/decimals.ts'
import { textOf } from '../changes/compare-fields.ts'
import type { Fault } from './problems.ts'

/** What is wrong with a body as a whole, and the field that would have to change. */
export interface BodyFault extends Fault {
  field: string
}

/**
 * A retention is a tax document: its number identifies it, for the tax office and for finding it again after a lost
 * reply. 0 and less stand for "no number yet".
 */
export function numberBelowOne(body: Body): BodyFault | undefined {
  const number = textOf(body['number'])
  if (number === '' || compareDecimals(number, '1') >= 0) return undefined
  return { field: 'number', rule: 'min', words: 'is no number of a document: it has to be 1 or more' }
}

/** The interface, section 2.1: `default_source` is required when `collection_scheme` is `charge_payment`. */
export function chargesWithoutSource(body: Body): BodyFault | undefined {
  if (body['collection_scheme'] !== 'charge_payment' || textOf(body['default_source']) !== '')
    return undefined
  return {
    field: 'default_source',
    rule: 'required',
    words: 'has to be given in a row whose collection_scheme is charge_payment',
  }
}
