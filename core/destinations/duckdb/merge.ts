import type { Publication } from '../destination.ts'
import { repeatedRow } from '../errors.ts'
import { type WarehouseTable, instant, literal, quote, stagedName as stagedNameOf } from '../layout.ts'
import type { Merged, Merging } from '../warehouse/publish.ts'
import type { DuckDb } from './open.ts'
import { readRows, withDrift } from './rows.ts'

/** A publication in progress. */
interface Publishing {
  db: DuckDb
  publication: Publication
  /** The main table first. */
  tables: readonly WarehouseTable[]
}

/** How DuckDB stages, locks and merges. Nobody else can write, because the file is locked. */
export const toMerging = (db: DuckDb, publication: Publication, where: string): Merging => ({
  async stage(tables) {
    const { parts, signal } = publication
    const rows = new Map<string, number>()
    const drift = []
    for (const table of tables) {
      const written = stagedName(table)
      const write = (query: string) => db.run(`create or replace temporary table ${written} as ${query}`)
      const read = await readRows({ db, table, parts, write, written, where, signal })
      rows.set(table.table.name, read.rows)
      drift.push(read.drift)
    }
    return { rows, facts: withDrift(publication.facts, drift) }
  },
  lock: async () => void (await db.run('begin')),
  async merge(tables) {
    const publishing = { db, publication, tables }
    await refuseRepeated(publishing)
    const merged = await keepNewer(publishing)
    await replaceRecords(publishing)
    return merged
  },
})

const stagedName = ({ table }: WarehouseTable) => stagedNameOf(table.name)
const idOf = ({ table }: WarehouseTable) => quote(table.key[0]!)

/**
 * Without a key, nothing else would refuse them.
 * @throws {PartsDamagedError}
 */
async function refuseRepeated({ db, tables }: Publishing): Promise<void> {
  const [main] = tables as [WarehouseTable]
  const repeated = await db.all(
    `select 1 from ${stagedName(main)} group by ${idOf(main)} having count(*) > 1 limit 1`,
  )
  if (repeated.length > 0) throw repeatedRow(main.table.name)
}

/**
 * Leaves newer states of records as they are, which a stale replica has sent: takes the staged ones away, and notes that the
 * records were seen.
 * @returns how many rows of each table were left, if any, and how many staged records are new or changed
 */
async function keepNewer({ db, publication, tables }: Publishing): Promise<Merged> {
  const [main] = tables as [WarehouseTable]
  const target = quote(main.table.name)
  const id = idOf(main)
  const hasUpdated = main.columns.some(({ name, kind }) => name === 'updated' && kind === 'timestamp')
  const compare = (sign: string) => (hasUpdated ? `s.updated ${sign} t.updated` : 'false')
  const joined = `from ${stagedName(main)} s left join ${target} t on t.${id} = s.${id}`
  const [counted = {}] = await db.all(`select count(case when t._run_id is null then 1 end) as new,
    count(case when ${compare('>')} then 1 end) as changed, count(case when ${compare('<')} then 1 end) as stale ${joined}`)
  const changes = { new: Number(counted['new']), changed: Number(counted['changed']) }
  const kept = new Map<string, number>()
  if (counted['stale'] === '0') return { changes, kept }
  await db.run(`create temporary table _stale as select s.${id} as id ${joined} where ${compare('<')}`)
  for (const table of tables) {
    const rows = await db.run(`delete from ${stagedName(table)} where ${idOf(table)} in (from _stale)`)
    if (rows > 0) kept.set(table.table.name, rows)
  }
  await db.run(`update ${target} set _read_at = ${instant(publication.facts.startedAt)}, _deleted_at = null
    where ${id} in (from _stale)`)
  return { changes, kept }
}

/** Replaces the staged records, each with its child rows. */
async function replaceRecords({ db, publication, tables }: Publishing): Promise<void> {
  const [main] = tables as [WarehouseTable]
  const { run, facts } = publication
  for (const table of tables) {
    const target = quote(table.table.name)
    await db.run(
      `delete from ${target} where ${idOf(table)} in (select ${idOf(main)} from ${stagedName(main)})`,
    )
    await db.run(`insert into ${target} by name select *, ${literal(run)} as _run_id,
      ${instant(facts.startedAt)} as _read_at from ${stagedName(table)}`)
  }
}
