import { toInstant } from './instant.ts'
import { isRecord } from './record.ts'

/** Whether records are in the order of a key, oldest first; a chain over that key relies on it. */
export function isInOrder(records: readonly unknown[], key: 'created' | 'updated'): boolean {
  const instants = records.map((record) => (isRecord(record) ? toInstant(record[key]) : undefined))
  return instants.every((at, place) => at !== undefined && (place === 0 || at >= (instants[place - 1] ?? at)))
}
