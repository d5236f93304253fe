import { formatCountOf } from '../../runs/view/format.ts'
import type { Publication } from '../destination.ts'
import type { Deletes, Manifest } from '../manifest.ts'
import { rowsOf } from '../parts.ts'
import { instant, quote } from '../layout.ts'
import { changeAll, checkChanged, type Database } from './tables.ts'

/** The facts of a read that decide whether a record missing from it is gone. */
export type WholeRead = Pick<
  Manifest,
  'verdict' | 'mode' | 'filters' | 'capped' | 'clock' | 'hiddenFound' | 'statusCheck'
> & { rejected: { rows: number } }

/** Whether it was a proven read of the whole list. */
export const isOfAll = ({ verdict, mode, filters, capped }: WholeRead): boolean =>
  verdict === 'proven' && mode === 'full' && Object.keys(filters).length === 0 && !capped

/** Why a record missing from a proven read of the whole list may still exist, as half a sentence. */
export function caveatOf({ rejected, hiddenFound, statusCheck, clock }: WholeRead): string | undefined {
  if (rejected.rows > 0)
    return `${rejected.rows} of what came had no id that can be kept (see _rejected), and any of them may be one of these`
  if (hiddenFound)
    return 'the list hides records by their status, and one whose status changed during the read may have been missed'
  if (statusCheck === 'unread')
    return 'a record that changed during the read is shown under its status and was not read, so the list may hide records by their status'
  if (statusCheck === 'unordered')
    return 'the list does not honour ordering=-updated, so a record that went to a hidden status during the read looks as if it were gone'
  if (statusCheck === 'unseen')
    return 'more records changed during the read than one page of a status shows, so one that went to a hidden status may have been missed'
  // A local clock set back after the read would make a record created since look as if it had been there
  // before.
  if (clock === 'local')
    return "the service sent no time, so which records the read should have seen depends on this machine's clock"
  return undefined
}

export const readOf = ({ facts, mode, filters, capped, rejected = [] }: Publication): WholeRead => ({
  ...facts,
  mode,
  filters,
  capped,
  rejected: { rows: rowsOf(rejected) },
})

type Bounds = Pick<Manifest, 'startedAt' | 'completeThrough'>

/** The live records that a read of the whole list should have seen and did not; no other read has seen them since. */
export const isAbsent = ({ startedAt, completeThrough }: Bounds) =>
  `_deleted_at is null and _read_at < ${instant(startedAt)} and created <= ${instant(completeThrough)}`

/** A tenth of the live records, or this many if that is more, may be marked without an explicit limit. */
const alwaysAllowed = 10

/** How many ids are named. */
const mostNamed = 10

/** How a publication treats the records that its read lacks. */
export interface JudgedDeletes {
  /** All of them are to be marked, or none is. Undefined if the read can't prove that a record is gone. */
  deletes: Deletes | undefined
  /** What is held back, in one sentence. */
  warnings: string[]
  /** Whether the read proves deletes, and all of them are marked. */
  isProof: boolean
}

/**
 * Finds the live records that a proven read of the whole list should have seen and did not, counts them against the cap, and
 * decides whether they are marked.
 */
export async function findDeletes(db: Database, publication: Publication): Promise<JudgedDeletes> {
  const { facts, tables, resource, run, maxDeletes } = publication
  const { name, key, columns } = tables[0]!
  const read = readOf(publication)
  const hasCreated = columns.some((column) => column.name === 'created' && column.kind === 'timestamp')
  if (!isOfAll(read) || facts.completeThrough === null || !hasCreated)
    return { deletes: undefined, warnings: [], isProof: false }
  const id = quote(key[0]!)
  const [counted = {}] =
    await db.all(`select count(*) as live, count(*) filter (where ${isAbsent(facts)}) as absent
    from ${db.nameOf(name)} where _deleted_at is null`)
  const rows = Number(counted['absent'])
  const named =
    rows === 0
      ? []
      : await db.all(`select ${id}::text as first from ${db.nameOf(name)}
          where ${isAbsent(facts)} order by ${id} limit ${mostNamed}`)
  const first = named.map((row) => row['first'] ?? '')
  const ids = `(${first.join(', ')}${rows > first.length ? ', ...' : ''})`
  const usual = Math.max(alwaysAllowed, Math.floor(Number(counted['live']) / 10))
  const allowed = maxDeletes === 'all' ? Infinity : (maxDeletes ?? usual)
  const doubt = caveatOf(read)
  if (doubt === undefined && rows <= allowed)
    return { isProof: true, deletes: { marked: rows, heldBack: 0, first }, warnings: [] }
  const why =
    doubt === undefined
      ? `${rows === 1 ? 'is' : 'are'} no longer in the service ${ids}, which is more than may be marked as deleted at once; none was marked. If it` +
        ` is right, publish ${run} again with --max-deletes all.`
      : `${rows === 1 ? 'was' : 'were'} not seen ${ids}, and none was marked as deleted: ${doubt}.`
  return {
    isProof: false,
    deletes: { marked: 0, heldBack: rows, first, ...(rows > 0 && doubt !== undefined && { doubt }) },
    warnings: rows === 0 ? [] : [`${formatCountOf(rows, resource)} ${why}`],
  }
}

/** Marks the absent records and their child rows, as of the start of the read, if they are to be marked. */
export async function markDeletes(
  db: Database,
  { facts, tables }: Publication,
  { deletes }: Pick<JudgedDeletes, 'deletes'>,
): Promise<void> {
  if (deletes === undefined || deletes.marked === 0) return
  const [main, ...children] = tables as [Publication['tables'][0], ...Publication['tables'][0][]]
  const records = db.nameOf(main.name)
  const read = instant(facts.startedAt)
  const changed = await db.run(`update ${records} set _deleted_at = ${read} where ${isAbsent(facts)}`)
  checkChanged(db, main, { expected: deletes.marked, changed })
  for (const child of children)
    await changeAll(db, child, {
      how: `update ${db.nameOf(child.name)} as t set _deleted_at = ${read}`,
      where: `t._deleted_at is null and t.${quote(child.key[0]!)} in (select ${quote(main.key[0]!)} from ${records}
        where _deleted_at = ${read})`,
    })
}

/**
 * Marks and unmarks all child rows with their records, after records were seen again or somebody changed rows; marks those
 * whose record somebody has removed.
 */
export async function alignChildren(db: Database, { facts, tables }: Publication): Promise<void> {
  const [main, ...children] = tables as [Publication['tables'][0], ...Publication['tables'][0][]]
  const records = db.nameOf(main.name)
  for (const child of children) {
    const ofRecord = `from ${records} as r where r.${quote(main.key[0]!)} = t.${quote(child.key[0]!)}`
    const update = `update ${db.nameOf(child.name)} as t set _deleted_at =`
    await changeAll(db, child, {
      how: `${update} (select max(r._deleted_at) ${ofRecord})`,
      where: `exists (select 1 ${ofRecord} and t._deleted_at is distinct from r._deleted_at)`,
    })
    await changeAll(db, child, {
      how: `${update} ${instant(facts.startedAt)}`,
      where: `t._deleted_at is null and not exists (select 1 ${ofRecord})`,
    })
  }
}
