import { numberText } from '../billing/lossless-json.ts'

/** A record as the service returned it. */
export type SourceRecord = Record<string, unknown>

export function isRecord(value: unknown): value is SourceRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The id as text (retentions have numbers); undefined if there is none. */
export function idOf(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined
  const { id } = value
  if (typeof id === 'string') return id === '' ? undefined : id
  if (typeof id === 'number' || JSON.isRawJSON(id)) return numberText(id)
  return undefined
}

/** Identifies a record: its id, or the whole record if it has none. */
export function identityOf(value: unknown): string {
  return idOf(value) ?? `no id: ${JSON.stringify(value)}`
}
