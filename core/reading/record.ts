import { isRecord, toScalarText } from '../billing/lossless-json.ts'

/** A record as the service returned it. */
export type SourceRecord = Record<string, unknown>

export { isRecord }

/** The id as text (retentions have numbers); undefined if there is none. */
export function idOf(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined
  const { id } = value
  return typeof id === 'boolean' || id === '' ? undefined : toScalarText(id)
}

const nameless = 'no id: '
/** Whether an identity is that of a record with an id. */
export const isNamed = (identity: string): boolean => !identity.startsWith(nameless)

/** Identifies a record: its id, or the whole record if it has none. */
export function identityOf(value: unknown): string {
  const id = idOf(value)
  if (id === undefined) return `${nameless}${JSON.stringify(value)}`
  const copy = isRecord(value) ? copies.get(value) : undefined
  return copy === undefined ? id : `${id} (${copy})`
}

/** The records that have the id of another one in the same response: the second, the third and so on. */
const copies = new WeakMap<SourceRecord, number>()

/**
 * Tells the records of one response apart that have the same id and not the same contents. The same contents twice are
 * one record, which a join of the service shows twice.
 */
export function tellApart(records: readonly unknown[]): void {
  const first = new Map<string, SourceRecord>()
  const repeated = new Map<string, Set<string>>()
  for (const record of records) {
    const id = idOf(record)
    if (id === undefined || !isRecord(record)) continue
    const before = first.get(id)
    if (before === undefined) {
      first.set(id, record)
      continue
    }
    const texts = repeated.get(id) ?? new Set([JSON.stringify(before)])
    repeated.set(id, texts)
    const text = JSON.stringify(record)
    if (texts.has(text)) {
      const copy = [...texts].indexOf(text)
      if (copy > 0) copies.set(record, copy + 1)
    } else copies.set(record, texts.add(text).size)
  }
}

/** The service answered with data of the other mode; none of it may be published. */
export class TestModeMismatch extends Error {
  override readonly name = 'TestModeMismatch'
  readonly retryable = false
  constructor({ resource, id, testMode }: { resource: string; id: string; testMode: boolean }) {
    const [wanted, got] = testMode ? ['test', 'live'] : ['live', 'test']
    super(`${resource} ${id} is ${got} data, but ${wanted} data was requested; check BILLING_TEST_MODE`)
  }
}
