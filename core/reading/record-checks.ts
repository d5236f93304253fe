import type { ListResource } from '../billing/resources/resource.ts'
import { createFilters } from './filters.ts'
import type { RangeState } from './range-state.ts'
import { idOf, isRecord, type SourceRecord } from './record.ts'

/** The service answered with data of the other mode; none of it may be published. */
export class TestModeMismatch extends Error {
  override readonly name = 'TestModeMismatch'
  readonly retryable = false
  constructor({ resource, id, testMode }: { resource: string; id: string; testMode: boolean }) {
    const [asked, got] = testMode ? ['test', 'live'] : ['live', 'test']
    super(
      `${resource} ${id} is ${got} data, but ${asked} data was requested; check BILLING_TEST_MODE and BILLING_TEST_MODE_HEADER`,
    )
  }
}

/** The records of one step. */
export interface Batch {
  /** To be written. */
  records: SourceRecord[]
  /** Not an object, or without an id, so no table can hold it. */
  rejected: unknown[]
}

export interface RecordChecks {
  /**
   * Checks a new record and adds it to the batch.
   * @throws {TestModeMismatch}
   */
  add(batch: Batch, record: unknown): void
  uncheckable: string[]
}

export function createRecordChecks(options: {
  resource: ListResource
  filters: Readonly<Record<string, string>>
  testMode: boolean
  seen: RangeState['seen']
}): RecordChecks {
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
