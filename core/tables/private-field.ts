import { createHmac } from 'node:crypto'
import { isRecord, toScalarText } from './json-value.ts'

/** A known field that can't be treated as asked, or a hash without its key. */
export class PrivacyRefusedError extends Error {
  override readonly name = 'PrivacyRefusedError'
  readonly retryable = false
}

/** What is to be done with the value at one place of a record, and with the values below it. */
export interface PrivateField {
  action?: 'exclude' | 'hash'
  below: Map<string, PrivateField>
}

/** Lower-case hexadecimal HMAC-SHA-256 of a value's text: the same text has the same hash in every table. */
export type HashValue = (value: unknown) => string

export const createHash =
  (key: string): HashValue =>
  (value) =>
    createHmac('sha256', key)
      .update(toScalarText(value) ?? JSON.stringify(value))
      .digest('hex')

/**
 * A value without what is private in it; undefined where nothing may be left of it. Arrays are looked through.
 * A scalar where private fields were to be below it is left out: it can't be told what it holds.
 */
export function redact(value: unknown, rule: PrivateField | undefined, hash: HashValue): unknown {
  if (rule === undefined || value === null) return value
  if (rule.action === 'exclude') return undefined
  if (rule.action === 'hash') return hash(value)
  if (Array.isArray(value)) {
    return value.map((item: unknown) => redact(item, rule, hash) ?? null)
  }
  if (!isRecord(value)) return undefined
  // Without a prototype, a field called `__proto__` is a field like any other.
  const kept: Record<string, unknown> = Object.create(null)
  for (const [key, item] of Object.entries(value)) {
    const left = redact(item, rule.below.get(key), hash)
    if (left !== undefined) kept[key] = left
  }
  return kept
}
