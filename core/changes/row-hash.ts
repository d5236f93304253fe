import { createHash } from 'node:crypto'
import type { Body } from '../billing/client.ts'

/** The same for the same fields with the same digits, in whatever order they stand. */
export const rowHash = (body: Body): string =>
  createHash('sha256').update(sorted(body)).digest('hex').slice(0, 32)

function sorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return JSON.stringify(value) ?? ''
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${sorted(field)}`).join(',')}}`
}
