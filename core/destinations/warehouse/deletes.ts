import { rowsOf } from '../check-parts.ts'
import type { Publication } from '../destination.ts'
import type { Deletes } from '../manifest.ts'
import { doubtOf, isOfAll, type WholeRead } from './absence.ts'
import type { TablePlan } from './schema-change.ts'
import type { WarehouseSession } from './session.ts'
import { instant, literal, quote } from './sql.ts'
import { exportsTable } from './warehouse-owner.ts'

/** A tenth of what is there may go at once without anyone saying so, and as many as this where that is less. */
const alwaysAllowed = 10
const namedIds = 10

interface Marking {
  session: WarehouseSession
  publication: Publication
  /** The main table first. */
  plans: readonly TablePlan[]
}

const readOf = ({ facts, mode, filters, capped, rejected = [] }: Publication): WholeRead => ({
  ...facts,
  mode,
  filters,
  capped,
  rejected: { rows: rowsOf(rejected) },
})

/**
 * Which records the service no longer has: seen by no read as late as this one, though created in the time that it
 * is complete for. Undefined where the read proves nothing of the kind; where only a doubt is left, all
 * of them are held back, and `--max-deletes` does not release them.
 */
export async function findDeletes(marking: Marking): Promise<Deletes | undefined> {
  const { session, publication, plans } = marking
  const { completeThrough, startedAt } = publication.facts
  const main = plans[0]!
  const isKnown = main.types.has('created') && main.types.get('created') === main.types.get('_read_at')
  if (!isOfAll(readOf(publication)) || completeThrough === null || !isKnown) return undefined
  const target = `${quote(session.schema)}.${quote(main.table.table.name)}`
  const isGone = `"_read_at" < ${instant(startedAt)} and "created" <= ${instant(completeThrough)}`
  const id = quote(main.table.table.key[0]!)
  const [counted] = await session.all(`select count(*) as live, count(case when ${isGone} then 1 end) as gone
    from ${target} where "_deleted_at" is null`)
  const gone = Number(counted?.['gone'])
  const ofRead = doubtOf(readOf(publication))
  // With a doubt it must not count as a proof later on, for records of an older read that is merged late.
  if (gone === 0) return ofRead === undefined ? { marked: 0, heldBack: 0, first: [] } : undefined
  const doubt = ofRead ?? (await doubtOfIds(marking, `"_deleted_at" is null and ${isGone}`))
  const first = await session.all(`select ${id} as id from ${target}
    where "_deleted_at" is null and ${isGone} order by ${id} limit ${namedIds}`)
  const isAllowed = doubt === undefined && gone <= allowedDeletes(publication, Number(counted?.['live']))
  return {
    marked: isAllowed ? gone : 0,
    heldBack: isAllowed ? 0 : gone,
    first: first.map((row) => row['id'] ?? ''),
    ...(doubt !== undefined && { doubt }),
  }
}

/** An id and its hash are two rows of one record: of the one, a read that writes the other says nothing. */
async function doubtOfIds(marking: Marking, gone: string): Promise<string | undefined> {
  const { session, publication, plans } = marking
  const inSchema = (table: string) => `${quote(session.schema)}.${quote(table)}`
  const rows = await session.all(`select distinct cast((manifest -> 'hashed') as text) as hashed
    from ${inSchema(exportsTable)} where resource = ${literal(publication.resource)}
      and run in (select "_run_id" from ${inSchema(plans[0]!.table.table.name)} where ${gone})`)
  const hashesId = (names: readonly string[]) =>
    plans.some(({ table: { table } }) => table.key.some((key) => names.includes(`${table.name}.${key}`)))
  const isHashed = hashesId(publication.hashed)
  const isOther = rows.some(({ hashed }) => hashesId(JSON.parse(hashed ?? '[]') as string[]) !== isHashed)
  return isOther ? 'some were written with their ids hashed and some as they are' : undefined
}

function allowedDeletes({ maxDeletes }: Publication, live: number): number {
  if (maxDeletes === 'all') return Infinity
  return maxDeletes ?? Math.max(alwaysAllowed, Math.floor(live / 10))
}

export function toWarnings(publication: Publication, deletes: Deletes | undefined): string[] {
  if (deletes === undefined || deletes.heldBack === 0) return []
  const { resource, run } = publication
  const { heldBack, first } = deletes
  const more = heldBack > first.length ? ', ...' : ''
  if (deletes.doubt !== undefined)
    return [
      `${heldBack} ${resource} were not seen (${first.join(', ')}${more}), and none was marked as deleted: ${deletes.doubt}.`,
    ]
  return [
    `${heldBack} ${resource} are no longer in the service (${first.join(', ')}${more}), which is more than may be` +
      ` marked as deleted at once; none was marked. If it is right, publish ${run} again with --max-deletes all.`,
  ]
}

/**
 * Marks records by what the published exports say: each is gone since the first read that should have seen it and
 * did not, after the last that saw it. So a read that is merged late neither brings back nor takes away what a
 * later one has settled. Nothing is looked through where no record is gone by this read (`hasMoved`: or was seen
 * again in an older state, which unmarks it and not yet its children) and no later read has been merged.
 */
export async function markDeletes(marking: Marking & { hasMoved: boolean }): Promise<void> {
  const { session, publication, plans, hasMoved } = marking
  const [main, ...children] = plans as [TablePlan, ...TablePlan[]]
  if (main.types.get('created') !== main.types.get('_read_at')) return
  const inSchema = (table: string) => `${quote(session.schema)}.${quote(table)}`
  const read = instant(publication.facts.startedAt)
  const proofs = `${inSchema(exportsTable)} e where e.marks_deletes and e.resource = ${literal(publication.resource)}`
  const [later] = await session.all(`select 1 as one from ${proofs} and e.read_at > ${read} limit 1`)
  if (!hasMoved && later === undefined) return
  const target = inSchema(main.table.table.name)
  const since = `(select min(e.read_at) from ${proofs}
    and e.read_at > t."_read_at" and e.complete_through >= t."created")`
  await session.run(`update ${target} as t set "_deleted_at" = ${since}
    where t."_deleted_at" is null and t."_read_at" < (select max(e.read_at) from ${proofs})
      and ${since} is not null`)
  const id = quote(main.table.table.key[0]!)
  for (const { table } of children)
    // Children follow their parent: marked with it, and unmarked with it.
    for (const changed of ['t."_deleted_at" is not null', 'c."_deleted_at" is not null'])
      await session.run(`update ${inSchema(table.table.name)} as c set "_deleted_at" = t."_deleted_at"
        from ${target} as t where c.${quote(table.table.key[0]!)} = t.${id} and ${changed}
        and c."_deleted_at" is distinct from t."_deleted_at"`)
}
