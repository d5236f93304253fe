import type { Publication } from '../destination.ts'
import type { TablePlan } from './schema-change.ts'
import type { Staged, WarehouseSession } from './session.ts'
import { quote, stagedName } from '../sql.ts'

/** Session tables: the ids that several staged records have, and the row that stays of each. */
const repeated = quote('_repeated')
const kept = quote('_kept')

/** Whether the service has several records under one id, which a read found and is unproven for. */
export const hasRepeated = ({ facts }: Publication) => (facts.repeatedIds ?? []).length > 0

/**
 * Leaves out what no key allows: of several staged records with one id, the one that was changed last stays, without rows
 * in child tables, because nothing tells whose they are.
 */
export async function leaveOutRepeated(options: {
  session: WarehouseSession
  publication: Publication
  /** The main table first. */
  plans: readonly TablePlan[]
  staged: ReadonlyMap<string, Staged>
}): Promise<{ staged: ReadonlyMap<string, Staged>; warnings: string[] }> {
  const { session, publication, plans, staged } = options
  const [main, ...children] = plans as [TablePlan, ...TablePlan[]]
  const left = new Map(staged)
  const count = (plan: TablePlan, change: number) => {
    const { name } = plan.table.table
    const before = staged.get(name)!
    left.set(name, { ...before, rows: (left.get(name) ?? before).rows + change })
  }
  const idOf = ({ table, types }: TablePlan) => {
    const column = table.columns.find(({ name }) => name === table.table.key[0])!
    return session.typeSystem.stagedValue(column, types.get(column.name)!)
  }
  const remove = (plan: TablePlan) =>
    session.run(`delete from ${stagedName(plan.table.table.name)} s
      where ${idOf(plan)} in (select id from ${repeated})`)
  const rows = stagedName(main.table.table.name)
  const names = main.table.columns.map(({ name }) => quote(name)).join(', ')
  const order = main.table.columns
    .filter(({ name }) => name === 'updated' || name === 'created')
    .map(({ name }) => `${quote(name)} desc nulls last`)
    .toSorted()
    .toReversed()
  await session.run(`create temporary table ${repeated} as
    select id from (select ${idOf(main)} as id from ${rows} s) ids group by id having count(*) > 1`)
  for (const child of children) count(child, -(await remove(child)))
  await session.run(`create temporary table ${kept} as
    select ${names} from (
      select s.*, row_number() over (partition by ${idOf(main)} order by ${[...order, '1'].join(', ')}) as "_nth"
      from ${rows} s where ${idOf(main)} in (select id from ${repeated})
    ) numbered where "_nth" = 1`)
  count(main, -(await remove(main)))
  count(main, await session.run(`insert into ${rows} (${names}) select ${names} from ${kept}`))
  for (const table of [kept, repeated]) await session.run(`drop table ${table}`)
  const without = children.map(({ table }) => table.table.name)
  const ids = publication.facts.repeatedIds ?? []
  return {
    staged: left,
    warnings: [
      `Of the records with one id, the one that was changed last is here${without.length > 0 ? `, without rows in ${without.join(' and ')}` : ''}: ${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ` and ${ids.length - 5} more` : ''}.`,
    ],
  }
}
