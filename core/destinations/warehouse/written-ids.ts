import type { Publication } from '../destination.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from './sql.ts'
import { exportsTable } from './warehouse-owner.ts'

/** How a run wrote the ids of its records: unchanged, or hashed with a key. */
type WrittenIds = Pick<Publication, 'resource' | 'hashed' | 'hashedWith'>

const idOf = (resource: string) => `${resource}.id`

/** The columns `ids_hashed` and `hash_key` of the run being published. */
export const writtenIdsOf = ({ resource, hashed, hashedWith }: WrittenIds): string =>
  `${hashed.includes(idOf(resource))} as ids_hashed, cast(${literal(hashedWith ?? null)} as text) as hash_key`

/**
 * The published runs of a resource, one row of `_exports` each, with the columns `ids_hashed` and
 * `hash_key`.
 */
export const writersOf = ({ schema }: Pick<WarehouseSession, 'schema'>, resource: string): string =>
  `(select run, read_at, complete_through, marks_deletes,
      cast((manifest -> 'hashed') as text) like ${literal(`%"${idOf(resource)}"%`)} as ids_hashed,
      (manifest ->> 'hashedWith') as hash_key
    from ${quote(schema)}.${quote(exportsTable)} where resource = ${literal(resource)})`

/**
 * SQL that tests whether two runs wrote a record under the same id. An id and its hash are two rows of one
 * record, so a read that writes one form proves nothing about the other. Runs of versions that did not
 * record the key, and runs no longer in `_exports`, are assumed to have written the same form.
 */
export const wroteSameIds = (one: string, other: string): string =>
  `coalesce(${one}.ids_hashed = ${other}.ids_hashed
    and (not ${one}.ids_hashed or coalesce(${one}.hash_key = ${other}.hash_key, true)), true)`
