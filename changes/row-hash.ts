import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { Body } from '../billing/client.ts'
import { fieldMeta } from '../billing/resources/fields.ts'
import { textOf } from './contents.ts'
import { canonicalDecimal } from './decimals.ts'

/**
 * The key of a record that nothing but its contents identifies: the same for every way to write the same record. A
 * spreadsheet that is saved again turns `10.00` into `10` and `é` into `e` and an accent, and an empty cell means
 * the same as the default. Changing this takes a migration of the ledger (state/migrations/0003-row-keys.ts).
 */
export const rowHash =
  (schema: z.ZodObject) =>
  (body: Body): string => {
    const fields = Object.entries(body).flatMap(([name, value]) => {
      const text = canonical({ field: schema.shape[name] as z.ZodType | undefined, value })
      return text === undefined ? [] : [[name, text] as const]
    })
    const sorted = JSON.stringify(fields.toSorted(([a], [b]) => (a < b ? -1 : 1)))
    return createHash('sha256').update(sorted).digest('hex').slice(0, 32)
  }

/** Undefined where the service is told nothing by it. */
function canonical({ field, value }: { field: z.ZodType | undefined; value: unknown }): string | undefined {
  if (value === null || value === undefined) return undefined
  const meta = field && fieldMeta(field)
  const text = textOf(value).normalize('NFC')
  if (text === meta?.default) return undefined
  return meta?.kind === 'decimal' || meta?.kind === 'integer' ? canonicalDecimal(text) : text
}
