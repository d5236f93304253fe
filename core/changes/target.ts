import type { Body } from '../billing/client.ts'
import { textOf } from './compare-fields.ts'

/** The id of the record to change, and the fields to send. */
export function targetOf(body: Body): { id: string; fields: Body } {
  const { id, ...fields } = body
  return { id: textOf(id), fields }
}
