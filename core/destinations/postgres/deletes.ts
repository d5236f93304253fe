import { canProveDeletes, judgeAbsent, type JudgedDeletes } from '../absence.ts'
import type { Publication } from '../destination.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { quote } from '../sql.ts'
import type { Session } from './session.ts'

/**
 * The live records that a read of the whole list should have seen and did not; no other read has seen them since.
 * $1 is the read's start, $2 what it is complete through.
 */
export const absent = '"_deleted_at" is null and "_read_at" < $1 and "created" <= $2'

export const boundsOf = ({ startedAt, completeThrough }: Pick<Manifest, 'startedAt' | 'completeThrough'>) => [
  startedAt,
  completeThrough,
]

/** Finds the live records that the read proves gone, counts them against the cap, and decides what is to be done. */
export async function findDeletes(session: Session, publication: Publication): Promise<JudgedDeletes> {
  if (!canProveDeletes(publication)) return { marks: false, deletes: undefined, warnings: [], isProof: false }
  const { name, key } = publication.tables[0]!
  const bounds = boundsOf(publication.facts)
  const [counted] = await session.all(
    `select count(*) as live, count(*) filter (where ${absent}) as absent
      from ${session.nameOf(name)} where "_deleted_at" is null`,
    bounds,
  )
  const rows = Number(counted?.['absent'])
  const id = quote(key[0]!)
  const first =
    rows === 0
      ? []
      : await session.all(
          `select ${id}::text as id from ${session.nameOf(name)} where ${absent} order by ${id} limit 10`,
          bounds,
        )
  return judgeAbsent(publication, {
    rows,
    live: Number(counted?.['live']),
    first: first.map((row) => row['id'] ?? ''),
  })
}

/** Marks the absent records, as of the start of the read. */
export const markDeletes = (session: Session, { facts, tables }: Publication): Promise<number> =>
  session.run(
    `update ${session.nameOf(tables[0]!.name)} set "_deleted_at" = $1 where ${absent}`,
    boundsOf(facts),
  )

/** Marks and unmarks child rows with their records, and marks those whose record somebody has removed. */
export async function markChildren(session: Session, { facts, tables }: Publication): Promise<void> {
  const [main, ...children] = tables as [Publication['tables'][0], ...Publication['tables'][0][]]
  const records = session.nameOf(main.name)
  for (const child of children) {
    const isOf = `c.${quote(child.key[0]!)} = t.${quote(main.key[0]!)}`
    await session.run(`update ${session.nameOf(child.name)} c set "_deleted_at" = t."_deleted_at"
      from ${records} t where ${isOf} and c."_deleted_at" is distinct from t."_deleted_at"`)
    await session.run(
      `update ${session.nameOf(child.name)} c set "_deleted_at" = $1
        where "_deleted_at" is null and not exists (select from ${records} t where ${isOf})`,
      [facts.startedAt],
    )
  }
}
