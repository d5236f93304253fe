import type { ListResource } from '../billing/resources/resource.ts'
import { createFilters } from './filters.ts'
import { idOf, isRecord, type SourceRecord } from './record.ts'

/** The service answered with data of the other mode: nothing of it may be published. */
export class TestModeMismatch extends Error {
  override readonly name = 'TestModeMismatch'
  readonly retryable = false
  constructor({ resource, id, testMode }: { resource: string; id: string; testMode: boolean }) {
    const [asked, got] = testMode ? ['test', 'live'] : ['live', 'test']
    super(
      `${resource} ${id} is ${got} data, but ${asked} data was asked for; check BILLING_TEST_MODE and BILLING_TEST_MODE_HEADER`,
    )
  }
}

/** What the records of one step are. */
export interface Batch {
  /** To be written. */
  records: SourceRecord[]
  /** No object, or without an id: nothing a table could hold. */
  rejected: unknown[]
}

export interface Intake {
  /** Puts a record that came for the first time where it belongs. Throws `TestModeMismatch`. */
  add(batch: Batch, record: unknown): void
  uncheckable: string[]
}

/** What the records told about the service while they came. */
export interface Seen {
  /** Filters that were seen to be ignored, and how many records did not match. */
  ignored: Record<string, number>
  /** Records said whether they are live or test data. */
  testMode: boolean
}

export function createIntake(options: {
  resource: ListResource
  filters: Readonly<Record<string, string>>
  testMode: boolean
  seen: Seen
}): Intake {
  const { resource, testMode, seen } = options
  const filters = createFilters(resource, options.filters)
  return {
    uncheckable: filters.uncheckable,
    add(batch, record) {
      const id = idOf(record)
      if (!isRecord(record) || id === undefined) {
        batch.rejected.push(record)
        return
      }
      if (typeof record['test_mode'] === 'boolean') {
        seen.testMode = true
        if (record['test_mode'] !== testMode)
          throw new TestModeMismatch({ resource: resource.name, id, testMode })
      }
      const broken = filters.broken(record)
      if (broken === undefined) batch.records.push(record)
      else seen.ignored[broken] = (seen.ignored[broken] ?? 0) + 1
    },
  }
}
