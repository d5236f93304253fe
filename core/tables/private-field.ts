import { createHmac } from 'node:crypto'
import { isRecord, toScalarText } from './json-value.ts'

/** A known field cannot be treated as requested, or a hash has no key. */
export class PrivacyRefusedError extends Error {
  override readonly name = 'PrivacyRefusedError'
  readonly retryable = false
}

/** How to treat the value at one path of a record, and the values below it. */
export interface PrivateField {
  action?: 'exclude' | 'hash'
  below: Map<string, PrivateField>
}

/**
 * Returns the lower-case hexadecimal HMAC-SHA-256 of a value's text: the same text has the same hash in
 * every table.
 */
export type HashValue = (value: unknown) => string

export const createHash =
  (key: string): HashValue =>
  (value) =>
    createHmac('sha256', key)
      .update(toScalarText(value) ?? JSON.stringify(value))
      .digest('hex')

/**
 * Removes what is private from a value; undefined if nothing may remain. Arrays are searched item by item. A
 * scalar in place of an object with private fields is removed, because its content is unknown.
 */
export function redact(value: unknown, rule: PrivateField | undefined, hash: HashValue): unknown {
  if (rule === undefined || value === null) return value
  if (rule.action === 'exclude') return undefined
  if (rule.action === 'hash') return hash(value)
  if (Array.isArray(value)) {
    return value.map((item: unknown) => redact(item, rule, hash) ?? null)
  }
  if (!isRecord(value)) return undefined
  // Without a prototype, `__proto__` is an ordinary field.
  const kept: Record<string, unknown> = Object.create(null)
  for (const [key, item] of Object.entries(value)) {
    const left = redact(item, rule.below.get(key), hash)
    if (left !== undefined) kept[key] = left
  }
  return kept
}
