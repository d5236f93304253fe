import { canProveDeletes, judgeAbsent, type JudgedDeletes } from '../absence.ts'
import type { Publication } from '../destination.ts'
import { instant, quote } from '../sql.ts'
import type { TablePlan } from './schema-change.ts'
import type { WarehouseSession } from './session.ts'

interface Marking {
  session: WarehouseSession
  publication: Publication
  /** The main table first. */
  plans: readonly TablePlan[]
}

const inSchema = ({ session }: Marking, { table }: TablePlan) =>
  `${quote(session.schema)}.${quote(table.table.name)}`

/** The live records that the read should have seen and did not: no later read has seen them, because there is none. */
const absent = ({ publication: { facts } }: Marking) =>
  `"_deleted_at" is null and "_read_at" < ${instant(facts.startedAt)} and "created" <= ${instant(facts.completeThrough)}`

const nothing: JudgedDeletes = { marks: false, deletes: undefined, warnings: [], isProof: false }

/** Finds the live records that a proven read of the whole list should have seen and did not. */
export async function findDeletes(marking: Marking): Promise<JudgedDeletes> {
  const { session, publication, plans } = marking
  if (!canProveDeletes(publication)) return nothing
  const main = plans[0]!
  const target = inSchema(marking, main)
  const [counted] = await session.all(
    `select count(*) as live, count(case when ${absent(marking)} then 1 end) as absent from ${target} where "_deleted_at" is null`,
  )
  const id = quote(main.table.table.key[0]!)
  const first = await session.all(
    `select cast(${id} as text) as id from ${target} where ${absent(marking)} order by ${id} limit 10`,
  )
  return judgeAbsent(publication, {
    rows: Number(counted?.['absent']),
    live: Number(counted?.['live']),
    first: first.map((row) => row['id'] ?? ''),
  })
}

/** Marks the absent records, as of the start of the read. */
export async function markDeletes(marking: Marking): Promise<void> {
  const { session, publication, plans } = marking
  await session.run(`update ${inSchema(marking, plans[0]!)} set "_deleted_at" = ${instant(publication.facts.startedAt)}
    where ${absent(marking)}`)
}

/** Marks and unmarks child rows with their records, and marks those whose record somebody has removed. */
export async function markChildren(marking: Marking): Promise<void> {
  const { session, publication, plans } = marking
  const [main, ...children] = plans as [TablePlan, ...TablePlan[]]
  const target = inSchema(marking, main)
  for (const plan of children) {
    const child = inSchema(marking, plan)
    const isOf = `c.${quote(plan.table.table.key[0]!)} = t.${quote(main.table.table.key[0]!)}`
    await session.run(`update ${child} as c set "_deleted_at" = t."_deleted_at"
      from ${target} as t where ${isOf} and c."_deleted_at" is distinct from t."_deleted_at"`)
    await session.run(`update ${child} as c set "_deleted_at" = ${instant(publication.facts.startedAt)}
      where c."_deleted_at" is null and not exists (select 1 from ${target} t where ${isOf})`)
  }
}
