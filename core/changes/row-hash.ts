import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { Body } from '../billing/client.ts'
import { fieldOf, type FieldMeta } from '../billing/resources/fields.ts'
import { textOf } from './compare-fields.ts'
import { canonicalDecimal } from './decimals.ts'

/**
 * The key of a record that only its contents identify: the same for every spelling of the same record. Saving a
 * spreadsheet again may turn `10.00` into `10` and `é` into `e` and an accent, and an empty cell means the default.
 * Changing this requires a migration of the ledger (see state/migrations/sqlite/0003-row-keys.ts).
 */
export const rowHash =
  (schema: z.ZodObject) =>
  (body: Body): string => {
    const fields = Object.entries(body).flatMap(([name, value]) => {
      const text = canonical(fieldOf(schema, name), value)
      return text === undefined ? [] : [[name, text] as const]
    })
    const sorted = JSON.stringify(fields.toSorted(([a], [b]) => (a < b ? -1 : 1)))
    return createHash('sha256').update(sorted).digest('hex').slice(0, 32)
  }

/** Undefined for a value that means the same as leaving the field out. */
function canonical(meta: FieldMeta | undefined, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  const text = textOf(value).normalize('NFC')
  if (text === meta?.default) return undefined
  return meta?.kind === 'decimal' || meta?.kind === 'integer' ? canonicalDecimal(text) : text
}
