import { rowsOf } from '../parts/check-parts.ts'
import type { Publication } from '../destination.ts'
import type { Deletes } from '../manifest/manifest.ts'
import { caveatOf, isOfAll, type WholeRead } from './absence.ts'
import type { TablePlan } from './schema-change.ts'
import type { WarehouseSession } from './session.ts'
import { instant, literal, quote } from './sql.ts'
import { exportsTable } from './warehouse-owner.ts'

/** A tenth of the records, or this many if that is more, may be deleted without an explicit limit. */
const alwaysAllowed = 10
const namedIds = 10

/** Session tables: the reads that prove deletes, and the records they concern. */
const proofs = '_proofs'
const absent = '_absent'

interface Marking {
  session: WarehouseSession
  publication: Publication
  /** The main table first. */
  plans: readonly TablePlan[]
  /** Whether only this read proves anything: somebody may have changed when others saw a record. */
  isAlone?: boolean
}

/** The records that the service no longer has, and what a publication does about them. */
export interface FoundDeletes {
  /** For the manifest; undefined if the publication proves nothing about deletes. */
  deletes: Deletes | undefined
  /** What was held back, one sentence each. */
  warnings: string[]
  /** How many exceed the limit and are therefore not marked. */
  aboveCap: number
  /** Whether this read also proves deletes among records of later publications. */
  isProof: boolean
}

export const readOf = ({ facts, mode, filters, capped, rejected = [] }: Publication): WholeRead => ({
  ...facts,
  mode,
  filters,
  capped,
  rejected: { rows: rowsOf(rejected) },
})

/**
 * Finds live records that a proven read of the whole list should have seen and did not, after the last read
 * that saw them. The proof is this read, or another that is already published and began later. All of them
 * count against the limit. If it is exceeded, none is marked; records in doubt are not marked either, and
 * `--max-deletes` does not release those.
 */
export async function findDeletes(marking: Marking): Promise<FoundDeletes> {
  const { session, publication, plans } = marking
  const main = plans[0]!
  const isKnown = main.types.has('created') && main.types.get('created') === main.types.get('_read_at')
  const isWhole = isKnown && isOfAll(readOf(publication)) && publication.facts.completeThrough !== null
  const ofRead = isWhole ? caveatOf(readOf(publication)) : undefined
  await findAbsent(marking, { isKnown, isWhole, isDoubtful: ofRead !== undefined })
  const [counted] = await session.all(`select count(since) as gone, count(*) as absent from ${quote(absent)}`)
  const gone = Number(counted?.['gone'])
  const inDoubt = Number(counted?.['absent']) - gone
  const aboveCap = gone === 0 || gone <= (await allowedDeletes(marking, inDoubt)) ? 0 : gone
  const isProof = isWhole && ofRead === undefined && aboveCap === 0
  // A read with a doubt must not serve as proof later, for records of an older read that is merged late.
  if (gone + inDoubt === 0)
    return { deletes: isProof ? noDeletes : undefined, warnings: [], aboveCap, isProof }
  const doubt = inDoubt > 0 ? ofRead : undefined
  return {
    deletes: {
      marked: gone - aboveCap,
      heldBack: aboveCap + inDoubt,
      first: await firstOf(session, 'true'),
      ...(doubt !== undefined && { doubt }),
    },
    warnings: [
      ...(aboveCap > 0
        ? [aboveCapSentence(publication, aboveCap, await firstOf(session, 'since is not null'))]
        : []),
      ...(doubt === undefined
        ? []
        : [doubtSentence(publication, inDoubt, await firstOf(session, 'since is null'), doubt)]),
    ],
    aboveCap,
    isProof,
  }
}

const noDeletes: Deletes = { marked: 0, heldBack: 0, first: [] }

/**
 * Creates the table of absent records: `since` is the start of the first read that proves a record gone, or
 * null if only this read lacks it and cannot prove it. Searches records only if this read is of the whole
 * list or a later one is published.
 */
async function findAbsent(
  { session, publication, plans, isAlone = false }: Marking,
  { isKnown, isWhole, isDoubtful }: { isKnown: boolean; isWhole: boolean; isDoubtful: boolean },
): Promise<void> {
  const { startedAt, completeThrough } = publication.facts
  const { isNew, table } = plans[0]!
  const main = table.table
  const target = `${quote(session.schema)}.${quote(main.name)}`
  await session.run(`create temporary table ${quote(proofs)} as
    select read_at, complete_through, false as is_own from ${quote(session.schema)}.${quote(exportsTable)}
      where resource = ${literal(publication.resource)} and run <> ${literal(publication.run)} and marks_deletes
        and ${!isAlone}
    union all select ${instant(startedAt)}, ${instant(completeThrough)}, true where ${isWhole}`)
  // This read proves nothing about what it has brought itself.
  const [useful] = await session.all(`select 1 as one from ${quote(proofs)}
    where (is_own and ${!isNew}) or read_at > ${instant(startedAt)} limit 1`)
  const created = isKnown ? 't."created"' : 'null::timestamptz'
  await session.run(`create temporary table ${quote(absent)} as
    select t.${quote(main.key[0]!)} as id, min(case when not (p.is_own and ${isDoubtful}) then p.read_at end) as since
    from ${target} t
    join ${quote(proofs)} p on p.read_at > t."_read_at" and p.complete_through >= ${created}
    where ${useful !== undefined} and t."_deleted_at" is null
      and t."_read_at" < (select max(read_at) from ${quote(proofs)})
    group by 1`)
  await session.run(`drop table ${quote(proofs)}`)
}

async function firstOf(session: WarehouseSession, which: string): Promise<string[]> {
  const rows = await session.all(
    `select id from ${quote(absent)} where ${which} order by id limit ${namedIds}`,
  )
  return rows.map((row) => row['id'] ?? '')
}

/** How many may be marked; the tenth excludes records that the read proves nothing about. */
async function allowedDeletes(
  { session, publication: { maxDeletes }, plans }: Marking,
  inDoubt: number,
): Promise<number> {
  if (maxDeletes === 'all') return Infinity
  if (maxDeletes !== undefined) return maxDeletes
  const target = `${quote(session.schema)}.${quote(plans[0]!.table.table.name)}`
  const [counted] = await session.all(`select count(*) as live from ${target} where "_deleted_at" is null`)
  return Math.max(alwaysAllowed, Math.floor((Number(counted?.['live']) - inDoubt) / 10))
}

function aboveCapSentence({ resource, run }: Publication, rows: number, first: readonly string[]): string {
  return (
    `${rows} ${resource} are no longer in the service (${named(first, rows)}), which is more than may be` +
    ` marked as deleted at once; none was marked. If it is right, publish ${run} again with --max-deletes all.`
  )
}

function doubtSentence(
  { resource }: Publication,
  rows: number,
  first: readonly string[],
  doubt: string,
): string {
  return `${rows} ${resource} were not seen (${named(first, rows)}), and none was marked as deleted: ${doubt}.`
}

const named = (first: readonly string[], rows: number) =>
  `${first.join(', ')}${rows > first.length ? ', ...' : ''}`

/**
 * Marks the records found, each as of the first read that proves it gone, so that a read that is merged late
 * neither restores nor removes what a later one has decided. Children are marked and unmarked with their
 * parent (`hasKept`: some records were seen again in an older state, which unmarks them; `isDoubted`: somebody has changed
 * rows, and may have marked or removed one of both).
 */
export async function markDeletes(
  { session, publication, plans }: Marking,
  { found, hasKept, isDoubted }: { found: FoundDeletes; hasKept: boolean; isDoubted: boolean },
): Promise<void> {
  const [main, ...children] = plans as [TablePlan, ...TablePlan[]]
  const inSchema = (table: string) => `${quote(session.schema)}.${quote(table)}`
  const target = inSchema(main.table.table.name)
  const id = quote(main.table.table.key[0]!)
  const marked = found.deletes?.marked ?? 0
  if (marked > 0)
    await session.run(`update ${target} as t set "_deleted_at" = a.since
      from ${quote(absent)} a where a.id = t.${id} and a.since is not null`)
  await session.run(`drop table ${quote(absent)}`)
  if (marked === 0 && !hasKept && !isDoubted) return
  for (const { table } of children) {
    const child = inSchema(table.table.name)
    const isOf = `c.${quote(table.table.key[0]!)} = t.${id}`
    for (const changed of ['t."_deleted_at" is not null', 'c."_deleted_at" is not null'])
      await session.run(`update ${child} as c set "_deleted_at" = t."_deleted_at"
        from ${target} as t where ${isOf} and ${changed} and c."_deleted_at" is distinct from t."_deleted_at"`)
    if (isDoubted)
      await session.run(`update ${child} as c set "_deleted_at" = ${instant(publication.facts.startedAt)}
        where c."_deleted_at" is null and not exists (select 1 from ${target} t where ${isOf})`)
  }
}
