import { toInstant } from './instant.ts'
import { isRecord } from './record.ts'

/** Whether records came in the order of a key, oldest first: what a chain over that key stands on. */
export function isInOrder(records: readonly unknown[], key: 'created' | 'updated'): boolean {
  const instants = records.map((record) => (isRecord(record) ? toInstant(record[key]) : undefined))
  return instants.every((at, place) => at !== undefined && (place === 0 || at >= (instants[place - 1] ?? at)))
}
