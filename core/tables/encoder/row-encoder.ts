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
   * Encodes records of the service, parsed without loss, into rows. Nothing is lost: values that no column
   * holds go to `_extra`, under their path; a list item that is not an object gets a row with only `_extra`.
   */
  encode(records: readonly unknown[]): EncodedRows
  /** The key cell for a service id, before quoting: the id or its hash. */
  toWrittenId: (id: string) => string
}

/** Some values are walked by the engine's own recursion, which can exhaust the stack. */
const isTooDeep = (error: unknown) => error instanceof TooDeepError || error instanceof RangeError

/**
 * Creates the encoder of a resource, compiled once from its columns so that each record costs no more than
 * its cells.
 * @throws {UnknownFieldError | PrivacyRefusedError} `privacy` cannot be applied
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
