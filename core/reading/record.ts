import { numberText } from '../billing/lossless-json.ts'

/** A record as it came. */
export type SourceRecord = Record<string, unknown>

export function isRecord(value: unknown): value is SourceRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The id as text (retentions count theirs); undefined where there is none. */
export function idOf(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined
  const { id } = value
  if (typeof id === 'string') return id === '' ? undefined : id
  if (typeof id === 'number' || JSON.isRawJSON(id)) return numberText(id)
  return undefined
}

/** By what a record is known again: its id, or all of it where it has none. */
export function identityOf(value: unknown): string {
  return idOf(value) ?? `no id: ${JSON.stringify(value)}`
}
