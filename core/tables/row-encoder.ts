import type { EncodedRows } from './encoded-rows.ts'
import { toCell } from './cell.ts'
import { isRecord } from './json-value.ts'
import { compileRow } from './compiled-row.ts'
import { createOutput } from './encoder-output.ts'
import { toPrivateFields, type Privacy } from './privacy.ts'
import { createHash } from './private-field.ts'
import { redactRecord } from './redact-record.ts'
import { tablesOf, toRowPlan } from './row-plan.ts'
import type { Table, TableSource } from './table.ts'

export interface RowEncoder {
  readonly tables: readonly Table[]
  /**
   * Turns records of the service, parsed without loss, into rows. Nothing of a record is lost: what no column
   * holds is in `_extra`, at its place; an item of a list that is no object has a row with nothing but `_extra`.
   */
  encode(records: readonly unknown[]): EncodedRows
  /** What the key of a record's row holds for an id of the service, before it is quoted: the id, or its hash. */
  toWrittenId: (id: string) => string
}

/**
 * Makes the encoder of a resource once from its columns, so that the work for a record is no more than its cells.
 * @throws {UnknownFieldError | PrivacyRefusedError} where `privacy` can't be followed
 */
export function createRowEncoder(options: { resource: TableSource; privacy?: Privacy }): RowEncoder {
  const { resource, privacy = {} } = options
  const rule = toPrivateFields(resource, privacy)
  const hash = createHash(privacy.hashKey ?? '')
  const plan = toRowPlan(resource, rule)
  const out = createOutput(tablesOf(plan))
  const row = compileRow(plan, { out, hash })
  const { kind } = plan.table.columns[0]!
  const isHashed = rule?.below.get('id')?.action === 'hash'
  const toKey = isHashed ? hash : toCell[kind]

  const reject = (record: unknown, reason: string) => {
    out.rejected.text += `${JSON.stringify({ reason, record: redactRecord(record, plan.object, hash) ?? null })}\n`
    out.rejected.rows++
  }
  const encodeRecord = (record: unknown) => {
    if (!isRecord(record)) return reject(record, 'the record is no object')
    const { id } = record
    if (id === undefined || id === null || id === '') return reject(record, 'the record has no id')
    const key = toKey(id)
    if (key === undefined) return reject(record, `the record's id can't be kept as ${kind}`)
    row.append(record, key)
  }
  return {
    tables: tablesOf(plan),
    encode(records) {
      for (const record of records) encodeRecord(record)
      return out.take()
    },
    toWrittenId: (id) => (isHashed ? hash(id) : id),
  }
}
