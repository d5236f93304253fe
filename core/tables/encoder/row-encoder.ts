import type { EncodedRows } from './encoded-rows.ts'
import { toCell } from '../cell.ts'
import { TooDeepError } from '../json-cell.ts'
import { isRecord, toScalarText } from '../json-value.ts'
import { compileRow } from './compiled-row.ts'
import { createOutput } from './encoder-output.ts'
import { toPrivateFields, type Privacy } from '../privacy.ts'
import { createHash } from '../private-field.ts'
import { redactRecord } from '../redact-record.ts'
import { tablesOf, toRowPlan } from './row-plan.ts'
import type { Table, TableSource } from '../table.ts'

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

/** Some values are walked by recursion of the engine itself, and end with the stack. */
const isTooDeep = (error: unknown) => error instanceof TooDeepError || error instanceof RangeError

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
    out.rejected.text += `${toLine(record, reason)}\n`
    out.rejected.rows++
  }
  const toLine = (record: unknown, reason: string): string => {
    const lineOf = (kept: unknown) =>
      JSON.stringify({ reason, record: redactRecord(kept, plan.object, hash) ?? null })
    try {
      return lineOf(record)
    } catch (error) {
      if (!isTooDeep(error)) throw error
      return lineOf(isRecord(record) ? { id: toScalarText(record['id']) } : null)
    }
  }
  const encodeRecord = (record: unknown) => {
    if (!isRecord(record)) return reject(record, 'the record is no object')
    const { id } = record
    if (id === undefined || id === null || id === '') return reject(record, 'the record has no id')
    const key = toKey(id)
    if (key === undefined) return reject(record, `the record's id can't be kept as ${kind}`)
    try {
      out.orNothing(() => row.append(record, key))
    } catch (error) {
      if (!isTooDeep(error)) throw error
      reject({ id }, 'the record is nested too deeply')
    }
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
